//! Lists of kernels that compilers refuse for a target. A build writes them
//! (`--write-refused`), people review them, and later builds skip these kernels
//! (`--skip-refused`).
//!
//! There is one JSON object per line: `target`, `kernel_name`, `kernel_args`,
//! `reason`. Blank lines, and lines that begin with `#`, are notes of the
//! reviewer.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use gfxpack_compile::{Event, Failure};
use gfxpack_model::{JobId, KernelKey, Target};
use gfxpack_plan::plan::Plan;
use serde::{Deserialize, Serialize};

use crate::destination::replace;
use crate::error::{self, Result};
use crate::failures::reason_of;
use crate::text_file::read_text;

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    target: Target,
    kernel_name: String,
    kernel_args: String,
    /// For people; has no effect.
    #[serde(default)]
    reason: String,
}

/// Kernels that are not built, by target.
#[derive(Debug, Default)]
pub(crate) struct SkipList {
    keys: HashSet<(Target, KernelKey)>,
    /// Keys of the inputs that a list names.
    pub(crate) used: BTreeMap<Target, BTreeSet<KernelKey>>,
}

impl SkipList {
    /// Reads lists.
    ///
    /// # Errors
    /// If a file can't be read, or a line is not of this form.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self> {
        let mut keys = HashSet::new();
        for file in files {
            let text = read_text(file)?;
            for (number, line) in (1..).zip(text.lines()) {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let Line { target, kernel_name, kernel_args, .. } = serde_json::from_str(line)
                    .map_err(|error| {
                        error::usage(
                            format!(
                                "{}:{number}: failed to read a refused kernel: {error}",
                                file.display()
                            ),
                            "each line is a JSON object with target, kernel_name, kernel_args and \
                             reason, as `gfxpack build --write-refused FILE` writes it",
                        )
                    })?;
                keys.insert((target, KernelKey { kernel_name, kernel_args }));
            }
        }
        Ok(Self { keys, used: BTreeMap::new() })
    }

    /// Whether a list names the key for the target. Remembers such keys.
    pub(crate) fn skips(&mut self, target: &Target, key: &KernelKey) -> bool {
        if self.keys.is_empty() || !self.keys.contains(&(target.clone(), key.clone())) {
            return false;
        }
        self.used.entry(target.clone()).or_default().insert(key.clone());
        true
    }

    /// The kernels that lists name for the target.
    pub(crate) fn of(&self, target: &Target) -> BTreeSet<KernelKey> {
        let of_target = self.keys.iter().filter(|(of, _)| of == target);
        of_target.map(|(_, key)| key.clone()).collect()
    }

    /// The number of lines for these targets that name no kernel of the inputs,
    /// for example because they are for another release.
    pub(crate) fn unused(&self, targets: &[&Target]) -> usize {
        let is_used = |target, key| self.used.get(target).is_some_and(|keys| keys.contains(key));
        let of_these = self.keys.iter().filter(|(target, _)| targets.contains(&target));
        of_these.filter(|(target, key)| !is_used(target, key)).count()
    }
}

/// The kernels of a build that the compilers refused, with reasons.
#[derive(Debug, Default)]
pub(crate) struct RefusedKernels {
    jobs: BTreeMap<JobId, String>,
}

impl RefusedKernels {
    /// Records the refusals in an event. Only errors in the kernel itself count,
    /// not a crash, a time limit or a full disk.
    pub(crate) fn event(&mut self, event: &Event) {
        let mut add = |job: JobId, failure: &Failure| {
            if failure.is_kernels_fault() {
                let reason = reason_of(failure).map(str::trim);
                let reason = reason.map_or_else(|| failure.kind.to_string(), str::to_owned);
                self.jobs.insert(job, reason);
            }
        };
        match event {
            Event::FoundInCache { refused, .. } => {
                refused.iter().for_each(|(job, failure)| add(*job, failure));
            }
            Event::Failed { job, failure, .. } => add(*job, failure),
            Event::Finished { job, .. } => {
                self.jobs.remove(job);
            }
            _ => {}
        }
    }

    /// Writes the list atomically, in an order that does not depend on the build.
    ///
    /// # Errors
    /// If it can't be written.
    pub(crate) fn write(&self, plan: &Plan, path: &Path) -> Result<usize> {
        let mut lines = BTreeSet::new();
        for kdb in &plan.kdbs {
            for row in &kdb.rows {
                if let Some(reason) = self.jobs.get(&row.job) {
                    lines.insert(Line {
                        target: kdb.target.clone(),
                        kernel_name: row.key.kernel_name.clone(),
                        kernel_args: row.key.kernel_args.clone(),
                        reason: reason.clone(),
                    });
                }
            }
        }
        let mut text = String::new();
        for line in &lines {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
        }
        replace(path, text)?;
        Ok(lines.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        r#"{"target":"gfx1030","kernel_name":"a.s.o","kernel_args":" -mcpu=gfx1030","reason":"r"}"#;

    fn list(text: &str) -> Result<SkipList> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("refused.jsonl");
        std::fs::write(&path, text).unwrap();
        SkipList::read(&[path])
    }

    #[test]
    fn a_kernel_is_skipped_for_the_target_that_is_named_and_no_other() {
        let mut list = list(&format!("# reviewed\n\n{LINE}\n")).unwrap();
        let [old, new] = ["gfx1030", "gfx1100"].map(|name| name.parse::<Target>().unwrap());
        let key = KernelKey::for_source("a.s", "", "gfx1030");
        assert_eq!(list.unused(&[&old]), 1);
        assert!(!list.skips(&new, &key));
        assert!(!list.skips(&old, &KernelKey::for_source("b.s", "", "gfx1030")));
        assert!(list.skips(&old, &key) && list.skips(&old, &key));
        assert_eq!(list.used, BTreeMap::from([(old.clone(), BTreeSet::from([key]))]));
        assert_eq!((list.unused(&[&old]), list.unused(&[&new])), (0, 0));
    }

    #[test]
    fn a_malformed_line_is_reported_by_number() {
        for wrong in [
            "{}",
            "k.s.o",
            &LINE.replace("gfx1030\",\"k", "gfy\",\"k"),
            &LINE.replace("reason", "why"),
        ] {
            let error = list(&format!("{LINE}\n{wrong}\n")).err().unwrap();
            assert!(error.to_string().contains("refused.jsonl:2: "), "{error}");
        }
    }
}
