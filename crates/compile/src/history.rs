//! The inputs from which every key was built last, so that a later plan can list what has changed
//! since.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::{Digest, Error, KernelKey, TargetId};
use gfxpack_plan::plan::{Plan, Source};
use gfxpack_process::{touch, write_atomic};
use gfxpack_toolchain::Toolchain;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::executor::Summary;
use crate::store::ObjectStore;

/// At most this many keys are remembered for one target; those not built for longest are dropped.
const MAX_KEYS: usize = 400_000;
/// Below the store's directory; its files that are named by digest are evicted like others.
const DIR: &str = "history";
/// What is kept there: the files of a toolchain, a source closure, and what else was seen.
pub(crate) const TOOLCHAIN: &str = "toolchain";
pub(crate) const SOURCE: &str = "source";
pub(crate) const INPUTS: &str = "inputs";

/// The history of all keys of one target.
#[derive(Debug, Default)]
pub struct History {
    pub(crate) head: Head,
    records: HashMap<u128, HistoryRecord>,
}

/// The first line of a target's file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// gfxpack's version.
    pub(crate) gfxpack: String,
    /// Digests of toolchains, source closures and other inputs; records refer to them by index.
    toolchains: Vec<Digest>,
    sources: Vec<Digest>,
    inputs: Vec<Digest>,
}

/// The inputs from which one key was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryRecord {
    /// The key of its object.
    pub(crate) key: Digest,
    pub(crate) toolchain: Digest,
    pub(crate) source: Digest,
    pub(crate) inputs: Digest,
}

/// A number that identifies a key among the records.
fn key_number(key: &KernelKey) -> u128 {
    let digest = key.digest();
    let bytes: &[u8] = digest.as_ref();
    u128::from_be_bytes(bytes[..16].try_into().expect("a digest has 32 bytes"))
}

impl History {
    /// Reads the history of a target; empty if the file is missing or damaged.
    pub fn read(store: &ObjectStore, target_id: &TargetId) -> Self {
        let text = store.read_file(&file(target_id)).ok();
        text.and_then(|text| parse(&String::from_utf8(text).ok()?)).unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &KernelKey) -> Option<&HistoryRecord> {
        self.records.get(&key_number(key))
    }

    /// Records what a build made, for each of its targets.
    ///
    /// # Errors
    /// If it can't be written, which only costs explanations later.
    pub fn record(
        plan: &Plan,
        toolchains: &[Toolchain],
        store: &ObjectStore,
        summary: &Summary,
    ) -> Result<(), Error> {
        let (mut used_toolchains, mut used_sources) = (HashSet::new(), HashSet::new());
        let mut all_inputs = HashMap::new();
        let mut by_target: BTreeMap<&TargetId, Self> = BTreeMap::new();
        let source_digests: Vec<Digest> = plan.sources.iter().map(Source::digest).collect();
        for kdb in &plan.kdbs {
            let numbers: Vec<u128> = kdb.rows.par_iter().map(|row| key_number(&row.key)).collect();
            for (row, number) in kdb.rows.iter().zip(numbers) {
                let job = &plan[row.job];
                let inputs = summary.inputs.get(&row.job);
                let object = summary.objects[row.job.0].as_ref().zip(inputs);
                let Some(((object, _), inputs)) = object else { continue };
                used_toolchains.insert(job.toolchain);
                used_sources.insert(job.source);
                all_inputs.insert(inputs.digest, inputs);
                let record = HistoryRecord {
                    key: object.key,
                    toolchain: plan[job.toolchain].digest,
                    source: source_digests[job.source.0],
                    inputs: inputs.digest,
                };
                by_target.entry(kdb.target.id()).or_default().records.insert(number, record);
            }
        }
        for index in used_toolchains {
            keep(store, TOOLCHAIN, plan[index].digest, &toolchains[index.0].covered_files)?;
        }
        for index in used_sources {
            keep(store, SOURCE, source_digests[index.0], &plan[index])?;
        }
        for (digest, inputs) in all_inputs {
            keep(store, INPUTS, digest, &inputs.listed)?;
        }
        for (target_id, mut new) in by_target {
            let old = Self::read(store, target_id);
            for (number, record) in old.records {
                if new.records.len() >= MAX_KEYS {
                    break;
                }
                new.records.entry(number).or_insert(record);
            }
            let path = store.dir.join(file(target_id));
            let text = new.text();
            if fs::read(&path).ok().is_none_or(|known| known != text.as_bytes()) {
                write_atomic(&path, &[text.as_bytes()]).map_err(Error::io("write", path))?;
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        use std::fmt::Write as _;
        let listed = |of: &dyn Fn(&HistoryRecord) -> Digest| -> Vec<Digest> {
            let mut all: Vec<Digest> = self.records.values().map(of).collect();
            all.sort();
            all.dedup();
            all
        };
        let head = Head {
            gfxpack: env!("CARGO_PKG_VERSION").to_owned(),
            toolchains: listed(&|record| record.toolchain),
            sources: listed(&|record| record.source),
            inputs: listed(&|record| record.inputs),
        };
        let mut text = serde_json::to_string(&head).expect("plain data");
        text.push('\n');
        let place = |list: &[Digest], digest| list.binary_search(&digest).expect("it is listed");
        let mut records: Vec<(&u128, &HistoryRecord)> = self.records.iter().collect();
        records.par_sort_unstable_by_key(|(number, _)| **number);
        for (number, HistoryRecord { key, toolchain, source, inputs }) in records {
            let toolchain = place(&head.toolchains, *toolchain);
            let source = place(&head.sources, *source);
            let inputs = place(&head.inputs, *inputs);
            writeln!(text, "{number:032x} {key} {toolchain} {source} {inputs}")
                .expect("a String takes all");
        }
        text
    }
}

fn parse(text: &str) -> Option<History> {
    let (head, lines) = text.split_once('\n')?;
    let head: Head = serde_json::from_str(head).ok()?;
    let record = |line: &str| {
        let mut words = line.splitn(5, ' ');
        let number = u128::from_str_radix(words.next()?, 16).ok()?;
        let key = words.next()?.parse().ok()?;
        let toolchain = *head.toolchains.get(words.next()?.parse::<usize>().ok()?)?;
        let source = *head.sources.get(words.next()?.parse::<usize>().ok()?)?;
        let inputs = *head.inputs.get(words.next()?.parse::<usize>().ok()?)?;
        Some((number, HistoryRecord { key, toolchain, source, inputs }))
    };
    let records = lines.lines().map(record).collect::<Option<_>>()?;
    Some(History { head, records })
}

/// What was kept of an earlier build under a digest.
pub(crate) fn kept<T: DeserializeOwned>(
    store: &ObjectStore,
    kind: &str,
    digest: Digest,
) -> Option<T> {
    serde_json::from_slice(&store.read_file(&kept_file(kind, digest)).ok()?).ok()
}

/// Writes a file named by a digest, unless it exists.
fn keep(
    store: &ObjectStore,
    kind: &str,
    digest: Digest,
    value: &impl Serialize,
) -> Result<(), Error> {
    let path = store.dir.join(kept_file(kind, digest));
    if touch(&path) {
        return Ok(());
    }
    let bytes = serde_json::to_vec(value).expect("plain data");
    write_atomic(&path, &[&bytes]).map_err(Error::io("write", &path))
}

fn file(target_id: &TargetId) -> PathBuf {
    // A target ID contains colons, which some file systems refuse.
    Path::new(DIR).join(format!("{}.keys", target_id.to_string().replace(':', "_")))
}

fn kept_file(kind: &str, digest: Digest) -> PathBuf {
    Path::new(DIR).join(format!("{kind}-{digest}.json"))
}
