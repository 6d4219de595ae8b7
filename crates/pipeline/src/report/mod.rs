//! The report of a build: one HTML page that holds all it needs, and the same
//! facts as a message. The page of a kdb is in [`kdb_stats`].

mod charts;
mod facts;
pub mod kdb_stats;
mod page;
#[cfg(test)]
mod tests;

use std::path::Path;

pub(crate) use facts::{Facts, OUTPUT_LIMIT};
pub use page::PRECOMPILED_HEADERS;

use crate::destination::replace;
use crate::error::{self, Error, Result};
use crate::failure_log::FailureFiles;
use crate::prepare::Prepared;
use crate::progress::{Event, Progress};
use crate::unbuildable;

/// Sees that a report can be written there, before hours of work.
pub fn check(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(error::usage(
            format!("failed to accept --report `{}`: it is a directory", path.display()),
            "give the name of a file, as report.html",
        ));
    }
    Ok(())
}

/// Reports a build that ended, well or with an error: the log of what failed,
/// and the page if one is wanted.
///
/// # Errors
/// Where one of them can't be written.
pub(crate) fn write(
    facts: &Facts,
    prepared: &Prepared,
    files: &FailureFiles,
    error: Option<&Error>,
    progress: &dyn Progress,
) -> Result<()> {
    let error = error.map(|error| error::in_full(error));
    let plan = &prepared.plan;
    let mut summary = facts.summary(plan, facts.begun.elapsed(), error.as_deref());
    summary["unbuildable"] = unbuildable::groups(&prepared.inputs.unbuildable).into();
    progress.event(Event::Report(&summary));
    files.write_log(&facts.failures, plan)?;
    if let Some(path) = &files.report {
        let page = page::page(facts, plan, &summary);
        replace(path, page.as_bytes()).map_err(error::io("write", path))?;
    }
    Ok(())
}
