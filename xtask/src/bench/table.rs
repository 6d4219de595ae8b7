//! Shows measurements as a table with ratios, on the terminal and in
//! docs/benchmarks.md.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

/// A way to do something, measured several times.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The name of the way.
    pub(crate) name: String,
    /// Seconds, one for each round.
    pub(crate) seconds: Vec<f64>,
    /// The text for each additional column.
    pub(crate) more: Vec<String>,
}

/// Rows that are compared with the first one.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// What all rows do.
    pub(crate) title: String,
    /// Names of the additional columns.
    pub(crate) columns: Vec<&'static str>,
    /// The others are compared with the first.
    pub(crate) rows: Vec<Row>,
}

/// The median, which a single disturbed round does not change.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (_, _) if sorted.is_empty() => f64::NAN,
        (middle, 1) => sorted[middle],
        (middle, _) => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

impl Table {
    /// The table in Markdown: a heading, and for each row its median, and how
    /// many times as fast as the first it is.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n| way | seconds | times as fast |", self.title);
        self.columns.iter().for_each(|column| write!(text, " {column} |").expect("a String"));
        text.push_str("\n| --- | ---: | ---: |");
        text.push_str(&" ---: |".repeat(self.columns.len()));
        let first = self.rows.first().map_or(f64::NAN, |row| median(&row.seconds));
        for row in &self.rows {
            let seconds = median(&row.seconds);
            write!(text, "\n| {} | {seconds:.2} | {:.2} |", row.name, first / seconds)
                .expect("a String");
            row.more.iter().for_each(|more| write!(text, " {more} |").expect("a String"));
        }
        text.push('\n');
        text
    }
}

/// Replaces the text between the markers of a section, or appends the section if
/// it does not exist.
pub(crate) fn write_section(file: &Path, section: &str, text: &str) -> anyhow::Result<()> {
    let old = fs::read_to_string(file).unwrap_or_else(|_| "# Benchmarks\n".to_owned());
    let new = replaced(&old, section, text);
    fs::write(file, new).with_context(|| format!("failed to write `{}`", file.display()))
}

fn replaced(old: &str, section: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- begin {section} -->"), format!("<!-- end {section} -->"));
    let block = format!("{begin}\n{}\n{end}", text.trim_end());
    match (old.find(&begin), old.find(&end)) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{block}{}", &old[..from], &old[to + end.len()..])
        }
        _ => format!("{}\n\n{block}\n", old.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_are_those_of_the_rows() {
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let row = |name: &str, seconds: &[f64]| Row {
            name: name.to_owned(),
            seconds: seconds.to_vec(),
            more: vec!["7 MB".to_owned()],
        };
        let table = Table {
            title: "T".to_owned(),
            columns: vec!["memory"],
            rows: vec![row("plain", &[6.0, 4.0, 5.0]), row("ours", &[2.5])],
        };
        assert_eq!(
            table.markdown(),
            "### T\n\n| way | seconds | times as fast | memory |\n| --- | ---: | ---: | ---: |\n\
             | plain | 5.00 | 1.00 | 7 MB |\n| ours | 2.50 | 2.00 | 7 MB |\n"
        );
    }

    #[test]
    fn a_section_is_replaced_and_others_stay() {
        let once = replaced("# B\n", "kdb", "one\n");
        assert_eq!(once, "# B\n\n<!-- begin kdb -->\none\n<!-- end kdb -->\n");
        let both = replaced(&once, "build", "two");
        let again = replaced(&both, "kdb", "three");
        assert_eq!(again, both.replace("one", "three"));
    }
}
