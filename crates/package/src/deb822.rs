//! Parses paragraphs of `Field: value` lines, the format of all of Debian's lists.
//!
//! Source: deb822(5).

use std::io::{self, BufRead, Read};

/// Maximum size of a paragraph, in bytes. Debian's longest have some 100 kB.
const PARAGRAPH_MAX: u64 = 16 << 20;

/// The text of a paragraph.
#[derive(Debug, Clone, Copy)]
pub struct Paragraph<'a>(pub &'a str);

impl<'a> Paragraph<'a> {
    /// The first line of a field's value.
    pub fn line(self, field: &str) -> Option<&'a str> {
        self.fields()
            .find(|(name, _)| name.eq_ignore_ascii_case(field))
            .map(|(_, value)| value.lines().next().unwrap_or_default().trim())
    }

    /// All lines of a field's value.
    pub fn lines(self, field: &str) -> Option<impl Iterator<Item = &'a str>> {
        let (_, value) = self.fields().find(|(name, _)| name.eq_ignore_ascii_case(field))?;
        Some(value.lines().map(str::trim).filter(|line| !line.is_empty()))
    }

    /// Names and values of all fields. A value continues on lines that begin with
    /// a blank.
    pub(crate) fn fields(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            loop {
                if rest.is_empty() {
                    return None;
                }
                let mut end = 0;
                for line in rest.split_inclusive('\n') {
                    if end > 0 && !line.starts_with([' ', '\t']) {
                        break;
                    }
                    end += line.len();
                }
                let (field, after) = rest.split_at(end);
                rest = after;
                if field.starts_with('#') {
                    continue;
                }
                if let Some((name, value)) = field.split_once(':') {
                    return Some((name, value));
                }
            }
        })
    }
}

/// Calls `see` with each paragraph of a file until it returns `false`.
///
/// # Errors
/// If the file can't be read, is not UTF-8, or has a paragraph that is too long.
pub fn paragraphs(
    mut file: impl BufRead,
    mut see: impl FnMut(Paragraph<'_>) -> bool,
) -> io::Result<()> {
    let mut text = String::new();
    loop {
        let from = text.len();
        let read = (&mut file).take(PARAGRAPH_MAX).read_line(&mut text)?;
        let blank = text[from..].trim().is_empty();
        if read > 0 && !blank {
            if text.len() as u64 >= PARAGRAPH_MAX {
                return Err(io::Error::other("a paragraph is too long"));
            }
            continue;
        }
        text.truncate(from);
        if !text.is_empty() && !see(Paragraph(&text)) {
            return Ok(());
        }
        text.clear();
        if read == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_continue_in_indented_lines() {
        let text = "# comment\nTypes: deb\nURIs: http://a/debian\n http://b/debian\n\tx\nEmpty:\n";
        let paragraph = Paragraph(text);
        assert_eq!(paragraph.line("types"), Some("deb"));
        assert_eq!(paragraph.line("Empty"), Some(""));
        assert_eq!(paragraph.line("Suites"), None);
        let uris: Vec<_> = paragraph.lines("URIs").into_iter().flatten().collect();
        assert_eq!(uris, ["http://a/debian", "http://b/debian", "x"]);
    }

    #[test]
    fn empty_lines_separate_paragraphs() {
        let mut seen = Vec::new();
        let text = "\n\nPackage: a\nVersion: 1\n\n \nPackage: b\n\n\nPackage: c";
        paragraphs(text.as_bytes(), |paragraph| {
            seen.push(paragraph.line("Package").map(str::to_owned).unwrap_or_default());
            seen.len() < 3
        })
        .unwrap();
        assert_eq!(seen, ["a", "b", "c"]);
        assert!(paragraphs(&b"Package: \xff\n"[..], |_| true).is_err());
    }
}
