//! Collects keys from many inputs in parallel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use gfxpack_model::key_record::{Counts, KeyRecord};
use gfxpack_model::{Error, KernelKey, Result};
use rayon::prelude::*;

use crate::input::Input;
use crate::open::Options;
use crate::read;
use crate::report::FileReport;

/// The keys, and what is known of each.
#[derive(Debug, Default)]
pub(crate) struct Table(BTreeMap<KernelKey, Found>);

#[derive(Debug, Default)]
struct Found {
    counts: Counts,
    /// Whether it was seen on the processor that it names.
    of_key: bool,
    targets: BTreeSet<String>,
}

impl Table {
    /// Adds counts of a key. Without targets it was seen on the processor that it names.
    pub(crate) fn add(&mut self, key: &KernelKey, counts: &Counts, targets: &[String]) {
        if !self.0.contains_key(key) {
            self.0.insert(key.clone(), Found::default());
        }
        let found = self.0.get_mut(key).expect("it was inserted");
        found.counts.add(counts);
        found.of_key |= targets.is_empty();
        found.targets.extend(targets.iter().cloned());
    }

    fn merge(&mut self, other: Self) {
        if self.0.is_empty() {
            return *self = other;
        }
        for (key, Found { counts, of_key, targets }) in other.0 {
            let found = self.0.entry(key).or_default();
            found.counts.add(&counts);
            found.of_key |= of_key;
            found.targets.extend(targets);
        }
    }

    fn into_records(self) -> Vec<KeyRecord> {
        let record = |(key, Found { counts, of_key, mut targets }): (KernelKey, Found)| {
            let device = key.split_device().filter(|_| of_key);
            targets.extend(device.map(|(_, device)| device.to_owned()));
            KeyRecord { key, counts, targets: targets.into_iter().collect(), of_build: false }
        };
        self.0.into_iter().map(record).collect()
    }
}

/// Collects the keys of all inputs: in ascending order, each once, and a report on each input, in
/// their order. Errors of single files are in their reports; what was read of such a file before
/// the error is in the harvest.
///
/// # Errors
/// Only that the caller asked to stop.
pub fn harvest(
    inputs: &[Input],
    options: &Options<'_>,
) -> Result<(Vec<KeyRecord>, Vec<FileReport>)> {
    let all = Mutex::new(Table::default());
    let one = |input: &Input| {
        let mut table = Table::default();
        let report = read::keys(input, &mut table, options);
        all.lock().unwrap_or_else(PoisonError::into_inner).merge(table);
        report
    };
    // One input per task, since any may be the largest.
    let files: Vec<FileReport> = inputs.par_iter().with_max_len(1).map(one).collect();
    if files.iter().filter_map(|report| report.error.as_ref()).any(Error::is_interrupted) {
        return Err(Error::interrupted());
    }
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((all.into_records(), files))
}
