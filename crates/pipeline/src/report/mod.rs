//! The report of a build: a self-contained HTML page, and the same facts as a
//! message.

mod annotations;
mod facts;
mod junit;
mod page;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use facts::{BuildFacts, OUTPUT_LIMIT};

use crate::destination::{replace, replace_with};
use crate::error::{self, Error, Result};
use crate::failure_log::FailureFiles;
use crate::options::BuildOptions;
use crate::prepare::Prepared;
use crate::progress::{Event, Progress};

/// Writes the reports of a build that ended, successfully or not: the log of
/// failures, and, if wanted, the page and the test results.
///
/// # Errors
/// If one of them can't be written.
pub(crate) fn write(
    facts: &BuildFacts,
    prepared: &Prepared,
    options: &BuildOptions,
    files: &FailureFiles,
    error: Option<&Error>,
    progress: &dyn Progress,
) -> Result<()> {
    let error = error.map(|error| error::in_full(error));
    let plan = &prepared.plan;
    let mut summary = facts.summary(plan, facts.begun.elapsed(), error.as_deref());
    summary["unbuildable"] = prepared.inputs.absent.groups().into();
    progress.event(Event::Report(&summary));
    files.write_log(&facts.failures, plan)?;
    if let Some(path) = &files.report {
        let page = page::page(facts, plan, &prepared.inputs.library, &summary);
        replace(path, page)?;
    }
    if options.environment().github_actions {
        for line in annotations::github(&facts.failures, plan) {
            progress.event(Event::Annotation(&line));
        }
    }
    if let Some(path) = options.junit() {
        replace_with(path, |out| junit::write(facts, prepared, out))?;
    }
    Ok(())
}
