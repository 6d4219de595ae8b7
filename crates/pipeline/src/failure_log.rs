//! `refused.log`: for each reason for which jobs failed, the compiler's whole
//! output about the first one. It lists all failures, not only refusals. The
//! terminal shows the first lines and names this file.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use gfxpack_plan::plan::Plan;
use gfxpack_plan::shard::Shard;
use gfxpack_process::write_output;

use crate::error::{self, Result};
use crate::failures::FailureGroups;
use crate::report::OUTPUT_LIMIT;
use crate::text::counted;

/// The first line of the file. One that begins otherwise was not written by
/// gfxpack.
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
        write_output(path, |out| out.write_all(text(groups, plan).as_bytes()))
            .map_err(error::io("write", path))
    }
}

fn text(groups: &FailureGroups, plan: &Plan) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_removed_and_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let files = FailureFiles::new(dir.path(), None, None);
        let log = dir.path().join("refused.log");
        let (toolchains, sources, jobs, kdbs) = Default::default();
        let plan = Plan { toolchains, sources, jobs, kdbs };
        files.write_log(&FailureGroups::default(), &plan).unwrap();
        fs::write(&log, "somebody's notes").unwrap();
        files.write_log(&FailureGroups::default(), &plan).unwrap();
        assert!(log.exists());
        fs::write(&log, format!("{HEAD}and more")).unwrap();
        files.write_log(&FailureGroups::default(), &plan).unwrap();
        assert!(!log.exists());
    }

    #[test]
    fn the_page_is_named_where_it_holds_all() {
        let shard = "2/3".parse().unwrap();
        let files = FailureFiles::new(Path::new("o"), Some(shard), Some(Path::new("r.html")));
        assert_eq!(files.holding("short"), Some(Path::new("r.html")));
        let long = "x".repeat(OUTPUT_LIMIT + 1);
        assert_eq!(files.holding(&long), Some(Path::new("o/refused-2-of-3.log")));
    }
}
