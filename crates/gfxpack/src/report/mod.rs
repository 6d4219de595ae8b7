//! The report of a build: one HTML page that holds all it needs, and the same
//! facts as a message.

mod facts;
mod page;
#[cfg(test)]
mod tests;

use std::path::Path;

pub(crate) use facts::Facts;

use crate::fail;
use crate::output::Output;
use crate::prepare::Prepared;
use crate::record::replace;
use crate::unbuildable;

/// Sees that a report can be written there, before hours of work.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        return Err(fail::usage(
            format!("failed to accept --report `{}`: it is a directory", path.display()),
            "give the name of a file, as report.html",
        ));
    }
    Ok(())
}

/// Tells of a build that ended, well or with an error.
pub(crate) fn tell(
    facts: &Facts,
    prepared: &Prepared,
    path: Option<&Path>,
    error: Option<&anyhow::Error>,
    output: &Output,
) -> anyhow::Result<()> {
    let error = error.map(|error| format!("{error:#}"));
    let plan = &prepared.plan;
    let mut summary = facts.summary(plan, facts.begun.elapsed(), error.as_deref());
    summary["unbuildable"] = unbuildable::groups(&prepared.unbuildable).into();
    output.message("report", &summary);
    if let Some(path) = path {
        let page = page::page(facts, plan, &summary);
        replace(path, page.as_bytes()).map_err(fail::io("write", path))?;
    }
    Ok(())
}
