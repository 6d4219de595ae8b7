//! Parses the control file of a .deb, with the rules without which dpkg installs
//! nothing.

/// Whether a value is valid.
type Rule = fn(&str) -> bool;

/// One stanza of fields.
#[derive(Debug)]
pub(super) struct Control<'a> {
    fields: Vec<(&'a str, String)>,
}

impl<'a> Control<'a> {
    /// Reads a control file.
    ///
    /// # Errors
    /// The first rule that is broken, as a phrase.
    ///
    /// Source: dpkg 1.21, lib/dpkg/parse.c, `parse_stanza`, `pkg_parse_field`,
    /// `parsedb_parse`; lib/dpkg/parsehelp.c, `pkg_name_is_illegal`,
    /// `parseversion`.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let mut fields: Vec<(&str, String)> = Vec::new();
        let lines = text.trim_matches('\n').split('\n');
        for line in lines {
            if line.trim().is_empty() {
                return Err("its control file has an empty line".to_owned());
            }
            if line.starts_with([' ', '\t']) {
                let Some((_, value)) = fields.last_mut() else {
                    return Err("its control file begins in the middle of a field".to_owned());
                };
                value.push('\n');
                value.push_str(line.trim());
                continue;
            }
            let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_name(name)) else {
                return Err(format!("its control file has a line that is no field: `{line}`"));
            };
            if fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                return Err(format!("its control file has the field `{name}` twice"));
            }
            fields.push((name, value.trim().to_owned()));
        }
        let control = Self { fields };
        let rules: [(&str, Rule); 3] = [
            ("Package", is_package),
            ("Version", is_version),
            ("Architecture", |value| !value.is_empty() && !value.contains(char::is_whitespace)),
        ];
        for (name, is_good) in rules {
            if !is_good(control.field(name)) {
                return Err(format!("its control file has no valid `{name}`"));
            }
        }
        Ok(control)
    }

    /// The value of a field; empty if there is none.
    pub(super) fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    /// The names of the packages that it depends on.
    pub(super) fn depends(&self) -> Vec<String> {
        let all = self.field("Depends").split([',', '|']);
        let names = all.filter_map(|one| one.split([' ', '(', ':', '\n']).find(|n| !n.is_empty()));
        names.map(str::to_owned).collect()
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('-') && name.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_package(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(inside)
}

fn is_version(version: &str) -> bool {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
    let known = |text: &str, more: &[u8]| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    epoch.parse::<i32>().is_ok_and(|epoch| epoch >= 0)
        && upstream.starts_with(|first: char| first.is_ascii_digit())
        && known(upstream, b".-+~:")
        && !revision.is_empty()
        && known(revision, b".+~")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "Package: x\nVersion: 1:1.0-1~a\nArchitecture: all\nDescription: x\n more\n .\n";

    #[test]
    fn a_control_file_is_one_stanza_of_fields() {
        let control = Control::read(GOOD).expect("it is sound");
        assert_eq!(control.field("version"), "1:1.0-1~a");
        assert_eq!(control.field("Description"), "x\nmore\n.");
        let depends = GOOD.replace("Desc", "Depends: a (>= 1), b:any | c\nDesc");
        assert_eq!(Control::read(&depends).expect("sound").depends(), ["a", "b", "c"]);
        for (from, to, expected) in [
            ("Package: x\n", "", "no valid `Package`"),
            ("Package: x", "Package: -x", "no valid `Package`"),
            ("Package: x", "Package: x y", "no valid `Package`"),
            ("Version: 1:1.0-1~a\n", "", "no valid `Version`"),
            ("1:1.0-1~a", "", "no valid `Version`"),
            ("1:1.0-1~a", "a:1", "no valid `Version`"),
            ("1:1.0-1~a", "1 2", "no valid `Version`"),
            ("1:1.0-1~a", "1-", "no valid `Version`"),
            ("all", "", "no valid `Architecture`"),
            ("all", "all amd64", "no valid `Architecture`"),
            ("Version", "Package: y\nVersion", "the field `Package` twice"),
            ("Version", "\nVersion", "an empty line"),
            ("Version", "-X: y\nVersion", "no field: `-X: y`"),
            ("Version", "X\nVersion", "no field: `X`"),
            ("Package", " Package", "in the middle of a field"),
        ] {
            let error = Control::read(&GOOD.replacen(from, to, 1)).expect_err(to);
            assert!(error.contains(expected), "{to}: {error}");
        }
        assert!(Control::read("").is_err());
    }
}
