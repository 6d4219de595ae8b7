//! What a person is told of kernels that failed.

use std::path::{Path, PathBuf};

use gfxpack_compile::Failure;
use gfxpack_model::JobId;
use gfxpack_plan::plan::Plan;

use crate::failures::{Groups, told_reason};

/// So many kernels that fail like an earlier one are named as they do.
const NAMED: usize = 5;

/// Tells of failures: the first of each reason in full, the next few by name,
/// and how many there were at the end.
#[derive(Debug)]
pub struct FailureTexts {
    groups: Groups,
    report: Option<PathBuf>,
}

impl FailureTexts {
    /// Where the build has a page that names all, its path.
    #[must_use]
    pub fn new(report: Option<&Path>) -> Self {
        Self { groups: Groups::default(), report: report.map(Path::to_owned) }
    }

    /// What to say of one as it happens, if anything.
    pub fn one(&mut self, plan: &Plan, job: JobId, failure: &Failure) -> Option<String> {
        let (_, before) = self.groups.add(job, failure);
        let mut text = format!("failed to compile `{}`: {}", plan[job].key, failure.kind);
        if before == 0 {
            for line in failure.output.lines() {
                text.push_str("\n    ");
                text.push_str(line);
            }
        } else if before <= NAMED {
            text.push_str(", as above");
            if let Some(reason) = told_reason(&failure.output) {
                text.push_str(&format!(": {}", reason.trim()));
            }
        } else {
            return None;
        }
        Some(text)
    }

    /// What to say at the end of the failures that were not told one by one.
    #[must_use]
    pub fn rest(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut hidden = false;
        for group in self.groups.list().iter().filter(|group| group.jobs.len() > 1) {
            let count = group.jobs.len();
            let more = count.saturating_sub(NAMED + 1);
            let more = match more {
                0 => String::new(),
                more => format!(" ({more} of them not named above)"),
            };
            hidden |= !more.is_empty();
            lines.push(format!("{count} kernels failed for one reason{more}: {}", group.title()));
        }
        if hidden {
            lines.push(match &self.report {
                Some(report) => format!("every failed kernel is in {}", report.display()),
                None => "--report FILE.html and --message-format json name every one".to_owned(),
            });
        }
        lines
    }
}
