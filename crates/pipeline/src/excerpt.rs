//! The part of a compiler's output that is worth showing.

use crate::failures::told_reason;
use crate::text::grouped;

/// So many lines of a compiler's output are shown.
const LINES: usize = 10;
/// So many letters of a line.
const LETTERS: usize = 400;

/// Some lines of an output, and how many there are more.
#[derive(Debug)]
pub(crate) struct Excerpt {
    /// The first lines; from the one that tells the reason on, if that comes
    /// later.
    pub(crate) lines: Vec<String>,
    /// What is left out, in words: `6,923 more lines`.
    pub(crate) more: Option<String>,
}

impl Excerpt {
    pub(crate) fn new(output: &str) -> Self {
        let all: Vec<&str> = output.lines().collect();
        let reason = told_reason(output);
        let reason = reason.and_then(|reason| all.iter().position(|line| *line == reason));
        // Warnings may stand above the reason, and they may be thousands.
        let start = reason.filter(|reason| *reason >= LINES).unwrap_or(0);
        let shown = &all[start..all.len().min(start + LINES)];
        let lines: Vec<String> = shown.iter().map(|line| shortened(line)).collect();
        let is_cut = lines.iter().zip(shown).any(|(line, whole)| line != whole);
        let more = match all.len() - shown.len() {
            0 if !is_cut => None,
            0 => Some("the whole lines".to_owned()),
            1 => Some("1 more line".to_owned()),
            more => Some(format!("{} more lines", grouped(more))),
        };
        Self { lines, more }
    }

    /// The lines as a text that ends with how many there are more.
    pub(crate) fn text(&self) -> String {
        match &self.more {
            Some(more) => format!("{}\n… {more}", self.lines.join("\n")),
            None => self.lines.join("\n"),
        }
    }
}

/// A line that no terminal has to scroll for.
pub(crate) fn shortened(line: &str) -> String {
    match line.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(output: &str) -> String {
        Excerpt::new(output).text()
    }

    #[test]
    fn ten_lines_are_shown_and_the_rest_is_counted() {
        let numbered = |count: usize| -> String { (0..count).map(|n| format!("{n}\n")).collect() };
        assert!(text(&numbered(10)).ends_with("8\n9"));
        assert!(text(&numbered(11)).ends_with("8\n9\n… 1 more line"));
        assert!(text(&numbered(6933)).ends_with("8\n9\n… 6,923 more lines"));
        assert_eq!(text(""), "");
    }

    #[test]
    fn the_reason_is_shown_wherever_it_is() {
        let noise = "k.cl:1:1: warning: w\n".repeat(50);
        let shown = text(&format!("{noise}k.cl:2:2: error: x\n  2 | y\n"));
        assert_eq!(shown, "k.cl:2:2: error: x\n  2 | y\n… 50 more lines");
    }

    #[test]
    fn long_lines_are_cut() {
        let excerpt = Excerpt::new(&"ß".repeat(100_000));
        assert_eq!(excerpt.lines[0].chars().count(), LETTERS + 1);
        assert_eq!(excerpt.more.as_deref(), Some("the whole lines"));
    }
}
