//! Texts for people about kernels that failed.

use gfxpack_compile::{Event, Failure};
use gfxpack_model::JobId;
use gfxpack_pipeline::failures::{Excerpt, FailureGroups, reason_of, shortened};
use gfxpack_pipeline::report::FailureFiles;
use gfxpack_plan::plan::Plan;

use crate::output::{counted, if_any};

/// How many further kernels that fail for a known reason are named.
const NAMED: usize = 5;

/// Reports failures as text: the first for each reason with some of the
/// compiler's output, the next few by name, and at the end how many there were.
pub(super) struct FailureTexts {
    groups: FailureGroups,
    files: FailureFiles,
}

impl FailureTexts {
    /// For a build that writes these files, to which the texts refer.
    pub(super) fn new(files: &FailureFiles) -> Self {
        Self { groups: FailureGroups::default(), files: files.clone() }
    }

    /// The texts to print for the failures in an event, now that it happens.
    pub(super) fn event(&mut self, plan: &Plan, event: &Event) -> Vec<String> {
        match event {
            Event::FoundInCache { refused, .. } => {
                // A repeated run reports its failures again.
                self.groups = FailureGroups::default();
                let texts = refused.iter().map(|(job, failure)| self.text_of(plan, *job, failure));
                texts.flatten().collect()
            }
            Event::Failed { job, failure, .. } => {
                self.text_of(plan, *job, failure).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The text for one failure, if it is to be named.
    fn text_of(&mut self, plan: &Plan, job: JobId, failure: &Failure) -> Option<String> {
        let (_, before) = self.groups.add(job, failure);
        let mut text = format!("failed to compile `{}`: {}", plan[job].key, failure.kind);
        if before == 0 {
            for line in self.excerpt(&failure.output) {
                text.push_str("\n    ");
                text.push_str(&line);
            }
        } else if before <= NAMED {
            text.push_str(", as above");
            if let Some(reason) = reason_of(failure) {
                text.push_str(&format!(": {}", shortened(reason)));
            }
        } else {
            return None;
        }
        Some(text)
    }

    /// The lines of an output that are worth showing, and where to find the others.
    fn excerpt(&self, output: &str) -> Vec<String> {
        let Excerpt { mut lines, more } = Excerpt::new(output);
        let Some(more) = more else { return lines };
        lines.push(match self.files.holding(output) {
            Some(file) => format!("… {more} in {}", file.display()),
            None => format!("… {more}; --json FILE has all"),
        });
        lines
    }

    /// Lines for the end of the build, about failures that were not reported one
    /// by one.
    pub(super) fn rest(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut hidden = false;
        for group in self.groups.list.iter().filter(|group| group.jobs.len() > 1) {
            let count = counted(group.jobs.len(), "kernel");
            let more = group.jobs.len().saturating_sub(NAMED + 1);
            let more = if_any(more, |more| format!(" ({more} of them not named above)"));
            hidden |= !more.is_empty();
            let title = shortened(&group.title());
            lines.push(format!("{count} failed for one reason{more}: {title}"));
        }
        if hidden {
            lines.push(match &self.files.report {
                Some(report) => format!("every failed kernel is in {}", report.display()),
                None => "--report FILE.html and --json FILE name every one".to_owned(),
            });
        }
        lines
    }
}
