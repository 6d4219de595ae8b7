//! One result of a check, and the collection of all.

use std::fmt;

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Suspicious, but perhaps intended.
    Warning,
    /// Wrong: kernels are not found, or should not be trusted.
    Problem,
}

impl Level {
    /// The level in output: `problem`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One result. As JSON it has these fields; as text, a line, and a second one
/// with the hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What was checked: `device`, `kdb`.
    pub about: &'static str,
    /// What was found.
    pub message: String,
    /// What to do about it; warnings and problems have one.
    pub hint: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8} {:<11} {}", self.level.name(), self.about, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n{:<21}hint: {hint}", ""),
            None => Ok(()),
        }
    }
}

/// Passes each finding on when it is made, and counts problems.
pub struct Findings<'a> {
    report: &'a mut dyn FnMut(&Finding),
    problems: usize,
}

impl<'a> Findings<'a> {
    /// Calls `report` for each finding.
    pub fn new(report: &'a mut dyn FnMut(&Finding)) -> Self {
        Self { report, problems: 0 }
    }

    /// The number of problems so far.
    pub fn problems(&self) -> usize {
        self.problems
    }

    pub(super) fn ok(&mut self, about: &'static str, message: impl Into<String>) {
        self.add(Level::Ok, about, message.into(), None);
    }

    pub(super) fn note(&mut self, about: &'static str, message: impl Into<String>) {
        self.add(Level::Note, about, message.into(), None);
    }

    pub(super) fn warning(
        &mut self,
        about: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Level::Warning, about, message.into(), Some(hint.into()));
    }

    pub(super) fn problem(
        &mut self,
        about: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.problems += 1;
        self.add(Level::Problem, about, message.into(), Some(hint.into()));
    }

    fn add(&mut self, level: Level, about: &'static str, message: String, hint: Option<String>) {
        (self.report)(&Finding { level, about, message, hint });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_handed_on_and_problems_counted() {
        let mut lines = Vec::new();
        let mut report = |finding: &Finding| {
            lines.push((finding.to_string(), serde_json::to_string(finding).unwrap()));
        };
        let mut findings = Findings::new(&mut report);
        findings.ok("device", "gfx906@60");
        findings.warning("kdb", "it is old", "install a new one");
        assert_eq!(findings.problems(), 0);
        findings.problem("user cache", "it is gone", "look for it");
        assert_eq!(findings.problems(), 1);
        let expected = [
            (
                "ok       device      gfx906@60",
                r#"{"level":"ok","about":"device","message":"gfx906@60","hint":null}"#,
            ),
            (
                "warning  kdb         it is old\n                     hint: install a new one",
                r#"{"level":"warning","about":"kdb","message":"it is old","hint":"install a new one"}"#,
            ),
            (
                "problem  user cache  it is gone\n                     hint: look for it",
                r#"{"level":"problem","about":"user cache","message":"it is gone","hint":"look for it"}"#,
            ),
        ];
        assert_eq!(lines, expected.map(|(text, json)| (text.to_owned(), json.to_owned())));
    }
}
