//! The ledger: every wanted kernel of every target, built or absent for one reason. `kernels.jsonl`
//! beside the kdbs has one line for each; what summaries, reports and packages say of absent kernels
//! are sums over it.
//!
//! People may review a ledger and give it to later builds (`--skip-refused`), which then leave out
//! what compilers refused. Blank lines, and lines that begin with `#`, are their notes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, JobId, KernelKey, Target};
use gfxpack_package::{Written, sums};
use gfxpack_plan::plan::Plan;
use gfxpack_process::write_output;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{self, Error, ErrorKind, Result};
use crate::inputs::Inputs;
use crate::outputs::Outputs;
use crate::text::{read_text, word};

pub(crate) const FILE_NAME: &str = "kernels.jsonl";

/// Why a wanted kernel is in no kdb of its target. Of several reasons, the first in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// `--license-allow` forbids to compile it.
    LeftOut,
    /// No compiler takes it, or an option is not allowed.
    NotCompilable,
    /// Its source, or the right version of it, was not found.
    NoSource,
    /// The library that asks for it does not carry its source, and does without it.
    NotCarried,
    /// A list of `--skip-refused` names it.
    Skipped,
    /// A kdb of `--missing-from` has it.
    Present,
    /// The compiler refused it, and would again.
    Refused,
    /// Its job failed for any other reason, or did not run.
    Failed,
}

impl Reason {
    /// Whether a kdb without the kernel is incomplete: it should have been built.
    pub fn is_missing(self) -> bool {
        match self {
            Self::NoSource | Self::NotCompilable | Self::Refused | Self::Failed => true,
            Self::LeftOut | Self::NotCarried | Self::Skipped | Self::Present => false,
        }
    }

    /// Whether the kernel can't be built from what there is, although a library wants it.
    pub(crate) fn is_without_source(self) -> bool {
        matches!(self, Self::NotCarried | Self::LeftOut)
    }
}

/// A wanted kernel that is in no kdb of its target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Absent {
    /// Its key.
    pub key: KernelKey,
    /// Why it is absent.
    pub reason: Reason,
    /// The same, for display.
    pub why: String,
}

impl Absent {
    /// A key that is not compiled because of what is wrong with it.
    pub(crate) fn faulty(key: &KernelKey, fault: &Error) -> Self {
        let reason = if fault.kind() == ErrorKind::NotFound {
            Reason::NoSource
        } else {
            Reason::NotCompilable
        };
        Self { key: key.clone(), reason, why: fault.to_string() }
    }

    pub(crate) fn new(key: &KernelKey, reason: Reason, why: impl Into<String>) -> Self {
        Self { key: key.clone(), reason, why: why.into() }
    }
}

/// By target: the absent kernels, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absences(BTreeMap<Target, Vec<Absent>>);

/// By reason: how many kernels are absent.
pub type AbsentCounts = BTreeMap<Reason, u64>;

/// How many of the counted kernels should have been built.
pub fn missing(counts: &AbsentCounts) -> u64 {
    counts.iter().filter(|(reason, _)| reason.is_missing()).map(|(_, count)| count).sum()
}

impl Absences {
    pub(crate) fn add(&mut self, target: &Target, absent: Absent) {
        self.0.entry(target.clone()).or_default().push(absent);
    }

    /// Sorts, and keeps one reason for each kernel.
    pub(crate) fn sort(&mut self) {
        for absent in self.0.values_mut() {
            absent.sort();
            absent.dedup_by(|a, b| a.key == b.key);
        }
    }

    /// The absent kernels of a target.
    pub fn of(&self, target: &Target) -> &[Absent] {
        self.0.get(target).map_or(&[], Vec::as_slice)
    }

    /// Says of kernels with one of these sources that its licence is the reason, not what is wrong
    /// with them.
    pub(crate) fn leave_out(&mut self, sources: &BTreeMap<String, String>) {
        let all = self.0.values_mut().flatten();
        for Absent { key, reason, why } in all.filter(|absent| absent.reason.is_missing()) {
            if let Some(own) = key.source_name().and_then(|source| sources.get(source)) {
                (*reason, *why) = (Reason::LeftOut, own.clone());
            }
        }
    }

    /// The targets that have absent kernels.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.0.keys()
    }

    /// All absent kernels.
    pub fn all(&self) -> impl Iterator<Item = (&Target, &Absent)> {
        self.0.iter().flat_map(|(target, all)| all.iter().map(move |one| (target, one)))
    }

    /// How many kernels of a target are absent, by reason.
    pub fn counts(&self, target: &Target) -> AbsentCounts {
        let mut counts = AbsentCounts::new();
        self.of(target).iter().for_each(|one| *counts.entry(one.reason).or_default() += 1);
        counts
    }

    /// Keys that a library asks for and that have no source here, or one that is left out.
    pub fn without_source(&self) -> BTreeSet<&KernelKey> {
        let without = self.all().filter(|(_, absent)| absent.reason.is_without_source());
        without.map(|(_, absent)| &absent.key).collect()
    }

    /// Sources that are not compiled because of their licence, with the reason.
    pub fn left_out(&self) -> BTreeMap<&str, &str> {
        let left_out = self.all().filter(|(_, absent)| absent.reason == Reason::LeftOut);
        left_out.filter_map(|(_, one)| Some((one.key.source_name()?, &*one.why))).collect()
    }

    /// The kernels that should have been built, grouped by reason and target, for messages and the
    /// report.
    pub fn groups(&self) -> Vec<Value> {
        let mut groups: BTreeMap<(Reason, &str, &Target), Vec<&KernelKey>> = BTreeMap::new();
        for (target, absent) in self.all().filter(|(_, absent)| absent.reason.is_missing()) {
            groups.entry((absent.reason, &absent.why, target)).or_default().push(&absent.key);
        }
        let group = |((reason, why, target), keys): ((Reason, &str, _), Vec<&KernelKey>)| {
            json!({
                "target": target, "kind": reason, "reason": why,
                "count": keys.len(), "keys": keys,
            })
        };
        groups.into_iter().map(group).collect()
    }
}

/// A line of `kernels.jsonl`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    target: Target,
    kernel_name: String,
    kernel_args: String,
    /// SHA-256 of the object, if it was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<Digest>,
    /// The object's size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absent: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The ledger of a build that has ended.
pub(crate) struct Ledger<'a> {
    pub(crate) plan: &'a Plan,
    /// By job: SHA-256 and size of its object; `None` where it has none.
    pub(crate) known: Vec<Option<(Digest, u64)>>,
    pub(crate) absences: Absences,
}

impl<'a> Ledger<'a> {
    /// The ledger of a plan whose jobs have these objects, or failed for these reasons.
    pub(crate) fn new(
        plan: &'a Plan,
        inputs: &Inputs,
        known: Vec<Option<(Digest, u64)>>,
        failed: &HashMap<JobId, (Reason, String)>,
    ) -> Self {
        let mut absences = inputs.absent.clone();
        for kdb in &plan.kdbs {
            for row in kdb.rows.iter().filter(|row| known[row.job.0].is_none()) {
                let unknown = || (Reason::Failed, "it was not compiled".to_owned());
                let (reason, why) = failed.get(&row.job).cloned().unwrap_or_else(unknown);
                absences.add(&kdb.target, Absent::new(&row.key, reason, why));
            }
        }
        absences.sort();
        Self { plan, known, absences }
    }

    /// The lines of each target, sorted by key.
    fn lines(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let mut lines: BTreeMap<String, Vec<(&KernelKey, String)>> = BTreeMap::new();
        let mut add =
            |target: &Target, key, object: Option<(Digest, u64)>, absent: Option<&Absent>| {
                let KernelKey { kernel_name, kernel_args } = KernelKey::clone(key);
                let line = Line {
                    target: target.clone(),
                    kernel_name,
                    kernel_args,
                    object: object.map(|(sha256, _)| sha256),
                    size: object.map(|(_, size)| size),
                    absent: absent.map(|absent| absent.reason),
                    why: absent.map(|absent| absent.why.clone()),
                };
                let line = serde_json::to_string(&line).map_err(error::json)?;
                lines.entry(target.to_string()).or_default().push((key, line));
                Ok::<(), Error>(())
            };
        for kdb in &self.plan.kdbs {
            for row in &kdb.rows {
                if let Some(object) = self.known[row.job.0] {
                    add(&kdb.target, &*row.key, Some(object), None)?;
                }
            }
        }
        for (target, absent) in self.absences.all() {
            add(target, &absent.key, None, Some(absent))?;
        }
        let sorted = |(target, mut lines): (String, Vec<(&KernelKey, String)>)| {
            lines.sort_by_key(|(key, _)| *key);
            (target, lines.into_iter().map(|(_, line)| line).collect())
        };
        Ok(lines.into_iter().map(sorted).collect())
    }

    fn digest(&self) -> Digest {
        let mut hasher = Hasher::new("gfxpack ledger 1").field(self.plan.digest().as_ref());
        for kdb in &self.plan.kdbs {
            let objects = kdb.rows.iter().map(|row| self.known[row.job.0]);
            let none = Digest::from_bytes([0; 32]);
            hasher = hasher
                .field(kdb.target.to_string().as_bytes())
                .list(objects.map(|object| object.map_or(none, |(sha256, _)| sha256)));
        }
        for (target, Absent { key, reason, why }) in self.absences.all() {
            hasher = hasher
                .field(target.to_string().as_bytes())
                .field(key.digest().as_ref())
                .field(word(reason).as_bytes())
                .field(why.as_bytes());
        }
        hasher.finish()
    }

    /// Writes the ledger into `out`, unless it is there already. Lines of earlier runs stay for the
    /// targets in `earlier`.
    pub(crate) fn write(
        &self,
        out: &Path,
        earlier: &BTreeSet<String>,
        outputs: &Outputs<'_>,
    ) -> Result<Written> {
        let path = out.join(FILE_NAME);
        let stays = earlier.iter().map(String::as_bytes);
        let output =
            outputs.digest_of(FILE_NAME, [self.digest().as_ref()].into_iter().chain(stays));
        if let Some(written) = outputs.unchanged(&output) {
            return Ok(Written { path, ..written });
        }
        let mut lines = self.lines()?;
        // A ledger that can't be read has nothing to keep.
        for text in fs::read_to_string(&path).unwrap_or_default().lines() {
            let Ok(line) = serde_json::from_str::<Line>(text) else { continue };
            let target = line.target.to_string();
            if earlier.contains(&target) {
                lines.entry(target).or_default().push(text.to_owned());
            }
        }
        write_output(&path, |file| {
            lines.values().flatten().try_for_each(|line| writeln!(file, "{line}"))
        })
        .map_err(error::io("write", &path))?;
        let written = sums::digest_file(&path)?;
        outputs.remember(&output, &written);
        Ok(written)
    }
}

/// Kernels that are not built since compilers refused them in earlier builds, by target.
#[derive(Debug, Default)]
pub(crate) struct SkipList {
    /// With what the compiler said.
    keys: HashMap<(Target, KernelKey), String>,
}

impl SkipList {
    /// Reads ledgers.
    ///
    /// # Errors
    /// If a file can't be read, or a line is not of this form.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self> {
        let mut keys = HashMap::new();
        for file in files {
            let text = read_text(file)?;
            for (number, text) in (1..).zip(text.lines()) {
                if text.trim().is_empty() || text.trim_start().starts_with('#') {
                    continue;
                }
                let line: Line = serde_json::from_str(text).map_err(|error| {
                    error::usage(
                        format!("{}:{number}: failed to read a kernel: {error}", file.display()),
                        "each line is one of the `kernels.jsonl` that a build writes into --out",
                    )
                })?;
                let Line { target, kernel_name, kernel_args, absent, why, .. } = line;
                if let Some(Reason::Refused | Reason::Skipped) = absent {
                    let key = KernelKey { kernel_name, kernel_args };
                    keys.insert((target, key), why.unwrap_or_default());
                }
            }
        }
        Ok(Self { keys })
    }

    /// Why a list names the key for the target, if one does.
    pub(crate) fn why(&self, target: &Target, key: &KernelKey) -> Option<&str> {
        if self.keys.is_empty() {
            return None;
        }
        self.keys.get(&(target.clone(), key.clone())).map(String::as_str)
    }

    /// The kernels that lists name for the target.
    pub(crate) fn of(&self, target: &Target) -> BTreeSet<KernelKey> {
        let of_target = self.keys.keys().filter(|(of, _)| of == target);
        of_target.map(|(_, key)| key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"target":"gfx1030","kernel_name":"a.s.o","kernel_args":" -mcpu=gfx1030","absent":"refused","why":"r"}"#;

    fn list(text: &str) -> Result<SkipList> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        fs::write(&path, text).unwrap();
        SkipList::read(&[path])
    }

    #[test]
    fn what_was_refused_or_skipped_is_skipped_for_the_target_that_is_named() {
        let [old, new] = ["gfx1030", "gfx1100"].map(|name| name.parse::<Target>().unwrap());
        let key = KernelKey::for_source("a.s", "", "gfx1030");
        for (reason, skips) in
            [("refused", true), ("skipped", true), ("failed", false), ("no-source", false)]
        {
            let line = LINE.replace("refused", reason);
            let list = list(&format!("# reviewed\n\n{line}\n")).unwrap();
            assert_eq!(list.why(&old, &key), skips.then_some("r"), "{reason}");
            assert_eq!(list.of(&old).contains(&key), skips);
            assert_eq!(list.why(&new, &key), None);
            assert_eq!(list.why(&old, &KernelKey::for_source("b.s", "", "gfx1030")), None);
        }
    }

    #[test]
    fn a_malformed_line_is_reported_by_number() {
        for wrong in [
            "{}",
            "k.s.o",
            &LINE.replace("gfx1030\",\"k", "gfy\",\"k"),
            &LINE.replace("why", "reason"),
            &LINE.replace("refused", "unwanted"),
        ] {
            let error = list(&format!("{LINE}\n{wrong}\n")).err().unwrap();
            assert!(error.to_string().contains("kernels.jsonl:2: "), "{error}");
        }
    }

    #[test]
    fn a_kernel_is_absent_for_one_reason() {
        let target: Target = "gfx906".parse().unwrap();
        let key = KernelKey::for_source("a.cl", "", "gfx906");
        let mut absences = Absences::default();
        for (reason, why) in
            [(Reason::Failed, "b"), (Reason::LeftOut, "its licence"), (Reason::LeftOut, "z")]
        {
            absences.add(&target, Absent::new(&key, reason, why));
        }
        absences.sort();
        assert_eq!(absences.counts(&target), AbsentCounts::from([(Reason::LeftOut, 1)]));
        assert_eq!(absences.left_out(), BTreeMap::from([("a.cl", "its licence")]));
        assert_eq!(missing(&absences.counts(&target)), 0);
        assert!(absences.groups().is_empty());
    }
}
