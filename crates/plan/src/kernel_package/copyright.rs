//! The machine-readable copyright file of a package, from the licences of its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};

use flate2::read::DeflateDecoder;

use super::release::{Release, SourceLicense};

/// The copyright file.
///
/// Source: Debian, "Machine-readable debian/copyright file", format 1.0.
pub(super) fn copyright(release: &Release) -> String {
    let mut text = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n",
    );
    let _ = writeln!(text, "Upstream-Name: {}", release.library);
    if !release.homepage.is_empty() {
        let _ = writeln!(text, "Source: {}", release.homepage);
    }
    let mut groups: BTreeMap<&SourceLicense, BTreeSet<&str>> = BTreeMap::new();
    for (source, license) in &release.licenses {
        groups.entry(license).or_default().insert(source);
    }
    let names: BTreeSet<String> = groups.keys().map(|group| dep5(&group.license)).collect();
    let holders: BTreeSet<&str> =
        groups.keys().flat_map(|group| group.copyright.trim().lines().map(str::trim)).collect();
    if groups.len() > 1 {
        text.push_str(
            "Comment: The kernel database was compiled from the sources that follow it.\n",
        );
    }
    let all = joined(names.iter().map(String::as_str), "and");
    stanza(&mut text, &["*"].into(), &holders, &all);
    if groups.len() > 1 {
        for (license, sources) in &groups {
            let holder = [license.copyright.as_str()].into();
            stanza(&mut text, sources, &holder, &dep5(&license.license));
        }
    }
    for license in names.iter().flat_map(|name| words(name)).collect::<BTreeSet<_>>() {
        let _ = write!(text, "\nLicense: {license}\n{}", license_text(license));
    }
    text
}

fn stanza(text: &mut String, files: &BTreeSet<&str>, holders: &BTreeSet<&str>, license: &str) {
    // Blanks separate file names, and `*` and `?` are wildcards.
    let files = files.iter().map(|file| file.replace([' ', '\\'], "?"));
    let files = files.collect::<Vec<_>>().join("\n ");
    let holders: Vec<String> = holders.iter().map(|holder| one_field(holder)).collect();
    let holders = holders.join("\n ");
    let _ = write!(text, "\nFiles: {files}\nCopyright: {holders}\nLicense: {license}\n");
}

/// Holders, possibly in several lines, as the value of one field: continued lines begin with a
/// blank, and an empty one is a full stop.
fn one_field(holders: &str) -> String {
    let lines = holders.trim().lines().map(str::trim);
    let lines = lines.map(|line| if line.is_empty() { "." } else { line });
    lines.collect::<Vec<_>>().join("\n ")
}

/// An SPDX expression in Debian's syntax, which has no parentheses: `and` binds before `or`, and a
/// comma separates parts that would otherwise be joined.
fn dep5(spdx: &str) -> String {
    let spdx = spdx.trim();
    for (operator, word) in [(" OR ", "or"), (" AND ", "and")] {
        let parts = split(spdx, operator);
        if parts.len() > 1 {
            let parts: Vec<String> = parts.into_iter().map(dep5).collect();
            return joined(parts.iter().map(String::as_str), word);
        }
    }
    match spdx.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => dep5(inner),
        None => short_name(spdx),
    }
}

/// The parts between operators that are outside of parentheses.
fn split<'a>(text: &'a str, operator: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 && at >= start && text[at..].starts_with(operator) => {
                parts.push(&text[start..at]);
                start = at + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>, word: &str) -> String {
    let parts: Vec<&str> = parts.collect();
    let comma = word == "and" && parts.iter().any(|part| part.contains(" or "));
    parts.join(&format!("{} {word} ", if comma { "," } else { "" }))
}

/// Debian's name of a licence, with its exception if it has one.
fn short_name(spdx: &str) -> String {
    let (license, exception) = match spdx.split_once(" WITH ") {
        Some((license, exception)) => (license, format!(" with {exception} exception")),
        None => (spdx, String::new()),
    };
    let name = match license {
        "MIT" => "Expat".to_owned(),
        gnu if gnu.contains("GPL-") => {
            let (plain, plus) = match gnu.strip_suffix("-or-later") {
                Some(plain) => (plain, "+"),
                None => (gnu.strip_suffix("-only").unwrap_or(gnu), ""),
            };
            format!("{}{plus}", plain.strip_suffix(".0").unwrap_or(plain))
        }
        other => other.to_owned(),
    };
    format!("{name}{exception}")
}

/// The licences named in a line.
fn words(line: &str) -> Vec<&str> {
    line.split(" or ")
        .flat_map(|part| part.split(" and "))
        .map(|part| part.trim_matches([',', ' ']))
        .collect()
}

/// The text below a licence's name, given Debian's name of it.
fn license_text(license: &str) -> String {
    let (plain, exception) = match license.split_once(" with ") {
        Some((plain, exception)) => (plain, exception.strip_suffix(" exception")),
        None => (license, None),
    };
    let common = plain.trim_end_matches('+');
    let mut text = match spdx_text(common) {
        _ if COMMON.contains(&common) => format!(
            "On Debian systems, the full text of this licence is in\n\
             /usr/share/common-licenses/{common}.\n"
        ),
        Some(text) => text,
        None => "The full text of this licence is with the sources of the kernels.\n".to_owned(),
    };
    if let Some(exception) = exception.and_then(text_of) {
        text = format!("{}\n\n{exception}", text.trim_end());
    }
    let mut stanza = String::new();
    let lines: Vec<&str> =
        text.trim().lines().filter(|line| !names_nobody(line)).map(str::trim_end).collect();
    // Removed lines must not leave two empty ones in a row.
    for lines in lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty()) {
        if !stanza.is_empty() {
            wrapped(&mut stanza, "");
        }
        paragraph(&mut stanza, lines);
    }
    stanza
}

/// Appends the lines of a paragraph. If they are too long, they are joined first, so that wrapping
/// leaves no short lines.
fn paragraph(stanza: &mut String, lines: &[&str]) {
    let too_long = lines.iter().any(|line| line.chars().count() > COLUMNS);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut joined: Vec<String> = Vec::new();
    for line in lines {
        match joined.last_mut() {
            Some(last) if too_long && indent(last) == indent(line) && !is_item(line) => {
                last.push(' ');
                last.push_str(line.trim_start());
            }
            _ => joined.push((*line).to_owned()),
        }
    }
    joined.iter().for_each(|line| wrapped(stanza, line));
}

/// Whether a line begins with the marker of a list item, such as `1.` or `(a)`.
fn is_item(line: &str) -> bool {
    let mark = line.split_whitespace().next().unwrap_or_default();
    mark.chars().count() <= 4 && mark.ends_with(|last: char| !last.is_alphanumeric())
}

/// The full text of a licence, given Debian's name of it.
fn spdx_text(name: &str) -> Option<String> {
    let name = if name == "Expat" { "MIT" } else { name };
    text_of(name).or_else(|| text_of(&format!("{name}.0")))
}

/// The text of a licence or an exception, given SPDX's identifier.
fn text_of(id: &str) -> Option<String> {
    let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/licenses"));
    let mut fields = BufReader::new(DeflateDecoder::new(packed)).split(0).map_while(Result::ok);
    while let Some(name) = fields.next() {
        let text = fields.next()?;
        if name == id.as_bytes() {
            return String::from_utf8(text).ok();
        }
    }
    None
}

/// Whether the line is a placeholder for the holder's name, which is in the field above.
fn names_nobody(line: &str) -> bool {
    line.trim_start().starts_with("Copyright") && line.contains('<')
}

/// The length of a line, without the blank that it begins with.
const COLUMNS: usize = 78;

/// Appends a line of a licence, wrapped if it is long.
fn wrapped(stanza: &mut String, line: &str) {
    if line.is_empty() {
        stanza.push_str(" .\n");
        return;
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut column = 0;
    for word in line.split_whitespace() {
        if column > 0 && column + 1 + word.chars().count() <= COLUMNS {
            let _ = write!(stanza, " {word}");
            column += 1 + word.chars().count();
        } else {
            let _ = write!(stanza, "{} {indent}{word}", if column == 0 { "" } else { "\n" });
            column = indent.len() + word.chars().count();
        }
    }
    stanza.push('\n');
}

/// Source: Debian 12, base-files, `/usr/share/common-licenses`.
const COMMON: [&str; 12] = [
    "Apache-2.0",
    "Artistic",
    "CC0-1.0",
    "GFDL-1.2",
    "GFDL-1.3",
    "GPL-1",
    "GPL-2",
    "GPL-3",
    "LGPL-2",
    "LGPL-2.1",
    "LGPL-3",
    "MPL-2.0",
];

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::tests::release;
    use super::*;

    #[test]
    fn expressions_keep_their_meaning_without_parentheses() {
        let check = |spdx, expected| assert_eq!(dep5(spdx), expected);
        check("MIT", "Expat");
        check("MIT-0", "MIT-0");
        check("MIT OR Apache-2.0", "Expat or Apache-2.0");
        check("BSD-3-Clause AND (MIT OR Apache-2.0)", "BSD-3-Clause, and Expat or Apache-2.0");
        check("(MIT AND ISC) OR Zlib", "Expat and ISC or Zlib");
        check("GPL-2.0-or-later", "GPL-2+");
        check("LGPL-2.1-only AND MIT", "LGPL-2.1 and Expat");
        check("Apache-2.0 WITH LLVM-exception", "Apache-2.0 with LLVM-exception exception");
    }

    #[test]
    fn every_source_is_listed_with_its_licence() {
        let release = release(&[("a.cl", "MIT OR Apache-2.0"), ("b.s", "BSD-3-Clause")]);
        let text = copyright(&release);
        let head: Vec<&str> = text.lines().take(18).collect();
        expect![[r#"
            Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
            Upstream-Name: kernels
            Comment: The kernel database was compiled from the sources that follow it.

            Files: *
            Copyright: a.cl's author
             b.s's author
            License: BSD-3-Clause, and Expat or Apache-2.0

            Files: b.s
            Copyright: b.s's author
            License: BSD-3-Clause

            Files: a.cl
            Copyright: a.cl's author
            License: Expat or Apache-2.0

            License: Apache-2.0"#]]
        .assert_eq(&head.join("\n"));
        for license in ["Expat", "Apache-2.0", "BSD-3-Clause"] {
            assert!(text.contains(&format!("\nLicense: {license}\n ")), "{license}: {text}");
        }
    }

    #[test]
    fn holders_in_several_lines_are_one_field() {
        let holders = one_field("2026 A\n\n  2025 B\nFiles: *\n");
        assert_eq!(holders, "2026 A\n .\n 2025 B\n Files: *");
    }

    #[test]
    fn every_licence_is_included_or_refers_to_debians_copy() {
        for license in ["MIT", "Zlib", "ISC", "BSL-1.0", "NCSA", "AGPL-3.0-or-later", "EUPL-1.2"] {
            let text = license_text(&short_name(license));
            assert!(text.lines().count() > 8, "{license}: {text}");
            let fits = |line: &str| line.starts_with(' ') && line.chars().count() <= 1 + COLUMNS;
            assert!(text.lines().all(fits), "{license}: {text}");
            assert!(!text.contains("<year>") && !text.contains(" .\n .\n"), "{license}: {text}");
        }
        for license in ["Apache-2.0", "GPL-2.0-or-later", "LGPL-2.1-only", "MPL-2.0"] {
            let text = license_text(&short_name(license));
            assert!(text.contains("/usr/share/common-licenses/"), "{license}: {text}");
        }
        let own = license_text("LicenseRef-own");
        assert_eq!(own, " The full text of this licence is with the sources of the kernels.\n");
    }

    #[test]
    fn long_lines_are_joined_before_they_are_wrapped() {
        let mut stanza = String::new();
        let long = "word ".repeat(18);
        paragraph(&mut stanza, &[long.trim(), "and more", "1. an item"]);
        let lines: Vec<&str> = stanza.lines().collect();
        assert_eq!(lines.len(), 3, "{stanza}");
        assert!(lines[1].ends_with("word and more") && lines[2] == " 1. an item", "{stanza}");
    }

    #[test]
    fn an_exception_follows_its_licence() {
        let text = license_text(&short_name("Apache-2.0 WITH LLVM-exception"));
        let (license, exception) = text.split_once("\n .\n").expect("two paragraphs");
        assert!(license.ends_with("/usr/share/common-licenses/Apache-2.0."), "{license}");
        assert!(exception.contains("LLVM Exceptions to the Apache 2.0 License"), "{exception}");
    }
}
