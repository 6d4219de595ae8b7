//! The report of a build: a self-contained HTML page, and the same facts as a
//! message.

mod facts;
mod junit;
mod page;
#[cfg(test)]
mod tests;

use gfxpack_plan::plan::Plan;

pub(crate) use facts::{BuildFacts, OUTPUT_LIMIT};

use crate::destination::{replace, replace_with};
use crate::environment::ENVIRONMENT;
use crate::error::{self, Error, Result};
use crate::failure_log::FailureFiles;
use crate::failures::{Excerpt, FailureGroup, FailureGroups};
use crate::options::BuildOptions;
use crate::prepare::Prepared;
use crate::progress::{Event, Progress};
use crate::text::counted;

/// Writes the reports of a build that ended, successfully or not: the log of
/// failures, and, if wanted, the page and the test results.
pub(crate) fn write(
    facts: &BuildFacts,
    Prepared { plan, inputs, .. }: &Prepared,
    options: &BuildOptions,
    files: &FailureFiles,
    error: Option<&Error>,
    progress: &dyn Progress,
) -> Result<()> {
    let error = error.map(|error| error::in_full(error));
    let mut summary = facts.summary(plan, facts.begun.elapsed(), error.as_deref());
    summary["unbuildable"] = inputs.absent.groups().into();
    progress.event(Event::Report(&summary));
    files.write_log(&facts.failures, plan)?;
    if let Some(path) = &files.report {
        let page = page::page(facts, plan, &inputs.library, &summary);
        replace(path, page)?;
    }
    if ENVIRONMENT.github_actions {
        for line in github(&facts.failures, plan) {
            progress.event(Event::Annotation(&line));
        }
    }
    if let Some(path) = options.reports(true).next() {
        replace_with(path, |out| junit::write(facts, plan, &inputs.absent, out))?;
    }
    Ok(())
}

/// GitHub shows at most this many per step.
const SHOWN: usize = 10;

/// Failures as annotations for GitHub Actions: a line for each reason.
///
/// Source: docs.github.com, "Workflow commands for GitHub Actions";
/// `packages/core/src/command.ts` of actions/toolkit for what is escaped.
fn github(groups: &FailureGroups, plan: &Plan) -> Vec<String> {
    groups.list.iter().take(SHOWN).map(|group| annotation(group, plan)).collect()
}

fn annotation(group: &FailureGroup, plan: &Plan) -> String {
    let title = format!("{} failed: {}", counted(group.jobs.len(), "kernel"), group.example.kind);
    let first = group.jobs.first().map(|job| &plan[*job]);
    let first = first.map(|job| format!("{} for {}\n", job.key, job.target_id));
    let text = Excerpt::new(&group.example.output).text();
    let text = format!("{}{text}", first.unwrap_or_default());
    format!("::error title={}::{}", property(&title), data(&text))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
