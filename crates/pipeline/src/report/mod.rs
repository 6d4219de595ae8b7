//! The report of a build: a self-contained HTML page, and the same facts as a
//! message.

mod facts;
mod junit;
mod page;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use gfxpack_plan::plan::Plan;
use gfxpack_plan::shard::Shard;
use gfxpack_process::write_output;

pub(crate) use facts::{BuildFacts, OUTPUT_LIMIT};

use crate::destination::{replace, replace_with};
use crate::environment::ENVIRONMENT;
use crate::error::{self, Error, Result};
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
        for group in facts.failures.list.iter().take(SHOWN) {
            progress.event(Event::Annotation(&annotation(group, plan)));
        }
    }
    if let Some(path) = options.reports(true).next() {
        replace_with(path, |out| junit::write(facts, plan, &inputs.absent, out))?;
    }
    Ok(())
}

/// The first line of `refused.log`, which has, for each reason for which jobs failed, the compiler's
/// whole output about the first one; not only of refusals. A file that begins otherwise was not
/// written by gfxpack.
const HEAD: &str = "# What compilers said of kernels that failed, by `gfxpack`.\n";

/// The files in which a build's failures can be read.
#[derive(Debug, Clone, Default)]
pub struct FailureFiles {
    /// The HTML report, which names every kernel.
    pub report: Option<PathBuf>,
    /// The log with whole outputs.
    pub log: Option<PathBuf>,
}

impl FailureFiles {
    /// The files of a build or a shard that writes to this directory.
    pub(crate) fn new(out: &Path, shard: Option<Shard>, report: Option<&Path>) -> Self {
        let name = match shard {
            None => "refused.log".to_owned(),
            Some(shard) => format!("refused-{}-of-{}.log", shard.index(), shard.count()),
        };
        Self { report: report.map(Path::to_owned), log: Some(out.join(name)) }
    }

    /// The file that holds this output in full: the report cuts long ones.
    pub fn holding(&self, output: &str) -> Option<&Path> {
        let page = self.report.as_deref().filter(|_| output.len() <= OUTPUT_LIMIT);
        page.or(self.log.as_deref())
    }

    /// Writes the log, or removes an earlier run's if nothing failed.
    pub(crate) fn write_log(&self, groups: &FailureGroups, plan: &Plan) -> Result<()> {
        let Some(path) = &self.log else { return Ok(()) };
        if groups.list.is_empty() {
            let mut head = Vec::new();
            let read = |file: File| file.take(HEAD.len() as u64).read_to_end(&mut head);
            let is_ours = File::open(path).and_then(read).is_ok() && head == HEAD.as_bytes();
            let removed = if is_ours { fs::remove_file(path) } else { Ok(()) };
            return removed.map_err(error::io("remove", path));
        }
        write_output(path, |out| out.write_all(log_of(groups, plan).as_bytes()))
            .map_err(error::io("write", path))
    }
}

fn log_of(groups: &FailureGroups, plan: &Plan) -> String {
    let mut text = HEAD.to_owned();
    for group in &groups.list {
        let Some(&first) = group.jobs.first() else { continue };
        let job = &plan[first];
        text.push_str(&format!(
            "\n## {}\ntarget: {}\nreason: {}\n",
            job.key, job.target_id, group.example.kind
        ));
        match group.jobs.len() - 1 {
            0 => {}
            more => text.push_str(&format!("the same of {} more\n", counted(more, "kernel"))),
        }
        text.push('\n');
        text.push_str(group.example.output.trim_end());
        text.push('\n');
    }
    text
}

/// GitHub shows at most this many per step.
const SHOWN: usize = 10;

/// The kernels that failed for a reason as an annotation for GitHub Actions, a line.
///
/// Source: docs.github.com, "Workflow commands for GitHub Actions";
/// `packages/core/src/command.ts` of actions/toolkit for what is escaped.
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
