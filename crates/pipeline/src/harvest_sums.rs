//! The counts of a harvest, and sentences about them.

use std::collections::BTreeMap;

use gfxpack_model::key_record::KeyRecord;
use serde_json::{Value, json};

use crate::text::{counted, joined};

/// Decides which keys a harvest takes, and counts them by kind.
#[derive(Debug, Default)]
pub struct HarvestSums {
    only_missed: bool,
    /// Keys that were read.
    pub read: u64,
    keys: u64,
    missed: u64,
    /// Keys that can't be compiled.
    uncompilable: u64,
    /// Those of them with features after the processor.
    with_features: u64,
    devices: BTreeMap<String, u64>,
}

impl HarvestSums {
    /// With `only_missed`, takes only keys that MIOpen had to compile.
    pub fn new(only_missed: bool) -> Self {
        Self { only_missed, ..Self::default() }
    }

    /// Counts a key, and returns whether it is taken.
    pub fn take(&mut self, record: &KeyRecord) -> bool {
        self.read += 1;
        if self.only_missed && !record.counts.was_missing() {
            return false;
        }
        self.keys += 1;
        self.missed += u64::from(record.counts.was_missing());
        self.uncompilable += u64::from(record.key.check().is_err());
        self.with_features += u64::from(record.key.has_features());
        let device = record.key.split_device().map_or("", |(_, device)| device);
        *self.devices.entry(device.to_owned()).or_default() += 1;
        true
    }

    /// The counts as a message; `file` has the keys, which come from so many files.
    pub fn message(&self, file: Option<String>, files: usize) -> Value {
        json!({
            "file": file, "keys": self.keys, "missed": self.missed,
            "uncompilable": self.uncompilable, "devices": self.devices, "files": files,
        })
    }

    /// The counts as lines of text.
    pub fn remarks(&self) -> Vec<String> {
        if self.keys == 0 {
            return vec![format!("nothing was missing among {}", counted(self.read, "key"))];
        }
        let devices = self.devices.iter().map(|(device, count)| match device.as_str() {
            "" => format!("{count} for no processor by name"),
            device => format!("{count} for {device}"),
        });
        let mut remarks = vec![format!(
            "{} ({}), {} of which were missing somewhere",
            counted(self.keys, "key"),
            joined(devices),
            self.missed
        )];
        let of_no_source = self.uncompilable - self.with_features;
        if of_no_source > 0 {
            remarks.push(format!(
                "{of_no_source} of them are of no source file that gfxpack compiles, or for no \
                 processor"
            ));
        }
        if self.with_features > 0 {
            remarks.push(format!(
                "{} of them are of MIOpen before 3.0, with features in -mcpu= \
                 (`gfx90a:sramecc+:xnack-`): no later one looks them up",
                self.with_features
            ));
        }
        remarks
    }
}
