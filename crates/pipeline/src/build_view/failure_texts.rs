//! What a person is told of kernels that failed.

use gfxpack_compile::Failure;
use gfxpack_model::JobId;
use gfxpack_plan::plan::Plan;

use crate::failure_log::FailureFiles;
use crate::failures::{Groups, told_reason};
use crate::text::{counted, grouped};

/// So many kernels that fail like an earlier one are named as they do.
const NAMED: usize = 5;
/// So many lines of a compiler's output are shown.
const LINES: usize = 10;
/// So many letters of a line.
const LETTERS: usize = 400;

/// Tells of failures: the first of each reason with some of the compiler's
/// output, the next few by name, and how many there were at the end.
#[derive(Debug)]
pub struct FailureTexts {
    groups: Groups,
    files: FailureFiles,
}

impl FailureTexts {
    /// For a build that has these files to read more in.
    #[must_use]
    pub fn new(files: &FailureFiles) -> Self {
        Self { groups: Groups::default(), files: files.clone() }
    }

    /// What to say of one as it happens, if anything.
    pub fn one(&mut self, plan: &Plan, job: JobId, failure: &Failure) -> Option<String> {
        let (_, before) = self.groups.add(job, failure);
        let mut text = format!("failed to compile `{}`: {}", plan[job].key, failure.kind);
        if before == 0 {
            for line in self.excerpt(&failure.output) {
                text.push_str("\n    ");
                text.push_str(&line);
            }
        } else if before <= NAMED {
            text.push_str(", as above");
            if let Some(reason) = told_reason(&failure.output) {
                text.push_str(&format!(": {}", shortened(reason.trim())));
            }
        } else {
            return None;
        }
        Some(text)
    }

    /// The lines of an output that are worth showing, and where the others are.
    fn excerpt(&self, output: &str) -> Vec<String> {
        let all: Vec<&str> = output.lines().collect();
        let reason = told_reason(output);
        let reason = reason.and_then(|reason| all.iter().position(|line| *line == reason));
        // Warnings may stand above the reason, and they may be thousands.
        let start = reason.filter(|reason| *reason >= LINES).unwrap_or(0);
        let shown = &all[start..all.len().min(start + LINES)];
        let mut lines: Vec<String> = shown.iter().map(|line| shortened(line)).collect();
        let is_cut = lines.iter().zip(shown).any(|(line, whole)| line != whole);
        let more = match all.len() - shown.len() {
            0 if !is_cut => return lines,
            0 => "the whole lines".to_owned(),
            1 => "1 more line".to_owned(),
            more => format!("{} more lines", grouped(more)),
        };
        lines.push(match self.files.holding(output) {
            Some(file) => format!("… {more} in {}", file.display()),
            None => format!("… {more}; --message-format json has all"),
        });
        lines
    }

    /// What to say at the end of the failures that were not told one by one.
    #[must_use]
    pub fn rest(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut hidden = false;
        for group in self.groups.list().iter().filter(|group| group.jobs.len() > 1) {
            let count = counted(group.jobs.len(), "kernel");
            let more = group.jobs.len().saturating_sub(NAMED + 1);
            let more = match more {
                0 => String::new(),
                more => format!(" ({more} of them not named above)"),
            };
            hidden |= !more.is_empty();
            let title = shortened(group.title());
            lines.push(format!("{count} failed for one reason{more}: {title}"));
        }
        if hidden {
            lines.push(match &self.files.report {
                Some(report) => format!("every failed kernel is in {}", report.display()),
                None => "--report FILE.html and --message-format json name every one".to_owned(),
            });
        }
        lines
    }
}

/// A line that no terminal has to scroll for.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn excerpt(output: &str) -> Vec<String> {
        FailureTexts::new(&FailureFiles::new(Path::new("o"), None, None)).excerpt(output)
    }

    #[test]
    fn ten_lines_are_shown_and_the_rest_is_counted() {
        let numbered = |count: usize| -> String { (0..count).map(|n| format!("{n}\n")).collect() };
        assert_eq!(excerpt(&numbered(10)).len(), 10);
        let one = excerpt(&numbered(11));
        assert_eq!((one.len(), one[10].as_str()), (11, "… 1 more line in o/refused.log"));
        let many = excerpt(&numbered(6933));
        assert_eq!((many.len(), many[10].as_str()), (11, "… 6,923 more lines in o/refused.log"));
        assert_eq!(excerpt(""), [""; 0]);
    }

    #[test]
    fn the_reason_is_shown_wherever_it_is() {
        let noise = "k.cl:1:1: warning: w\n".repeat(50);
        let lines = excerpt(&format!("{noise}k.cl:2:2: error: x\n  2 | y\n"));
        assert_eq!(
            lines,
            ["k.cl:2:2: error: x", "  2 | y", "… 50 more lines in o/refused.log"].map(String::from)
        );
    }

    #[test]
    fn long_lines_are_cut() {
        let lines = excerpt(&"ß".repeat(100_000));
        assert_eq!(lines[0].chars().count(), LETTERS + 1);
        assert_eq!(lines[1], "… the whole lines in o/refused.log");
    }
}
