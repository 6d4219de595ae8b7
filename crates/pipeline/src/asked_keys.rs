//! The keys that libMIOpen asks for, in the form of a key list (`--keys`).

use std::collections::{BTreeMap, BTreeSet};

use gfxpack_miopen::Uses;
use gfxpack_model::KernelKey;
use serde::Serialize;

use crate::ask::MiopenAnswer;

/// One key: a line of the list.
#[derive(Debug, Serialize)]
pub struct KeyLine<'a> {
    /// The key.
    #[serde(flatten)]
    pub key: &'a KernelKey,
    /// Targets whose MIOpen asks for it.
    pub targets: Vec<String>,
    /// How programs that ask for it use MIOpen.
    pub uses: String,
    /// Functions that the object must contain.
    pub functions: BTreeSet<&'a str>,
    /// Problems that want it, as MIOpenDriver's arguments.
    pub problems: Vec<String>,
}

/// What all targets together want of a key.
#[derive(Default)]
struct KeyRequests<'a> {
    targets: Vec<String>,
    uses: Uses,
    functions: BTreeSet<&'a str>,
    problems: BTreeSet<u32>,
}

/// Each key once, with all targets that want it; sorted by key.
pub fn key_lines(answer: &MiopenAnswer) -> Vec<KeyLine<'_>> {
    let mut by_key: BTreeMap<&KernelKey, KeyRequests<'_>> = BTreeMap::new();
    for (target, keys) in &answer.keys {
        for key in keys {
            let together = by_key.entry(&key.key).or_default();
            together.targets.push(target.db_basename());
            together.functions.extend(key.functions.iter().map(String::as_str));
            for (problem, uses) in &key.wanted {
                together.uses = together.uses.or(*uses);
                together.problems.insert(*problem);
            }
        }
    }
    let named = |problem: u32| answer.problems[problem as usize].to_string();
    by_key
        .into_iter()
        .map(|(key, together)| KeyLine {
            key,
            targets: together.targets,
            uses: together.uses.to_string(),
            functions: together.functions,
            problems: together.problems.into_iter().map(named).collect(),
        })
        .collect()
}
