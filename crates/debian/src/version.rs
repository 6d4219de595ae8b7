//! Compares versions as Debian does, and checks dependencies on versions.
//!
//! Source: Debian Policy 5.6.12 and 7.1.

use std::cmp::Ordering;

/// Compares two versions: epoch, upstream version, revision.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    a.0.cmp(&b.0).then_with(|| fragments(a.1, b.1)).then_with(|| fragments(a.2, b.2))
}

fn parts(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
        None => (0, version),
    };
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// Compares alternating runs of non-digits and digits: `~` sorts before the end,
/// the end before letters, letters before all else; digits compare as numbers.
fn fragments(mut a: &str, mut b: &str) -> Ordering {
    let order = |c: Option<char>| match c {
        Some('~') => 0,
        None => 1,
        Some(c) if c.is_ascii_alphabetic() => 2 + c as u32,
        Some(c) => 0x1_0000 + c as u32,
    };
    loop {
        let (text_a, text_b) = (run(&mut a, false), run(&mut b, false));
        let mut chars = (text_a.chars(), text_b.chars());
        loop {
            match (chars.0.next(), chars.1.next()) {
                (None, None) => break,
                (x, y) if order(x) != order(y) => return order(x).cmp(&order(y)),
                _ => {}
            }
        }
        let (digits_a, digits_b) = (run(&mut a, true), run(&mut b, true));
        let number = |digits: &str| digits.trim_start_matches('0').to_owned();
        let (number_a, number_b) = (number(digits_a), number(digits_b));
        let by_number = number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(&number_b));
        if by_number != Ordering::Equal {
            return by_number;
        }
        if a.is_empty() && b.is_empty() {
            return Ordering::Equal;
        }
    }
}

/// Splits off the leading digits, or the leading non-digits.
fn run<'a>(text: &mut &'a str, digits: bool) -> &'a str {
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    *text = rest;
    run
}

/// A dependency on a package, perhaps with a bound on its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The package's name.
    pub name: String,
    /// The operator, such as `>=`, and the version.
    bound: Option<(String, String)>,
}

impl Relation {
    /// The relations of a `Depends` field: one package of each group suffices.
    pub(crate) fn groups(field: &str) -> Vec<Vec<Self>> {
        let groups = field.split(',').filter(|group| !group.trim().is_empty());
        groups.map(|group| group.split('|').filter_map(Self::parse).collect()).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (name, bound) = match text.split_once('(') {
            Some((name, bound)) => (name, Some(bound.trim_end().strip_suffix(')')?.trim())),
            None => (text, None),
        };
        let name = name.trim().split(':').next()?.to_owned();
        let bound = match bound {
            None => None,
            Some(bound) => {
                let (operator, version) = bound.split_at(bound.find(|c: char| !"<>=".contains(c))?);
                let is_known = ["<<", "<=", "<", "=", ">=", ">", ">>"].contains(&operator);
                if !is_known {
                    return None;
                }
                Some((operator.to_owned(), version.trim().to_owned()))
            }
        };
        (!name.is_empty()).then_some(Self { name, bound })
    }

    /// Whether a version of the package satisfies the relation.
    pub fn allows(&self, version: &str) -> bool {
        let Some((operator, wanted)) = &self.bound else { return true };
        let order = compare(version, wanted);
        match operator.as_str() {
            "<<" => order.is_lt(),
            "<=" | "<" => order.is_le(),
            ">=" | ">" => order.is_ge(),
            ">>" => order.is_gt(),
            _ => order.is_eq(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_debians_order() {
        // In ascending order.
        let ascending = [
            "0.9",
            "1.0~rc1",
            "1.0~rc1+b1",
            "1.0",
            "1.0-1~exp1",
            "1.0-1",
            "1.0-1+b1",
            "1.0-1.1",
            "1.0-10",
            "1.0a-1",
            "1.0+dfsg-1",
            "1.1-1",
            "1.10-1",
            "2.43-7",
            "1:0.1-1",
        ];
        for pair in ascending.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        for (a, b) in [("1.0", "1.00"), ("0:1.0-1", "1.0-1"), ("1.0-0", "1.0"), ("1.01", "1.1")] {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} {b}");
        }
    }

    #[test]
    fn dependencies_are_checked_against_versions() {
        let groups = Relation::groups("libc6 (>= 2.38), a:any | b (<< 2~), c (= 1.0-1+b1),");
        let names: Vec<Vec<&str>> =
            groups.iter().map(|g| g.iter().map(|r| r.name.as_str()).collect()).collect();
        assert_eq!(names, [vec!["libc6"], vec!["a", "b"], vec!["c"]]);
        assert!(groups[0][0].allows("2.43-7") && !groups[0][0].allows("2.36-9+deb12u10"));
        assert!(groups[1][0].allows("0"));
        assert!(groups[1][1].allows("1.9") && !groups[1][1].allows("2"));
        assert!(groups[2][0].allows("1.0-1+b1") && !groups[2][0].allows("1.0-1"));
    }
}
