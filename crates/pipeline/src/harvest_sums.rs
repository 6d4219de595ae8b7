//! The counts of a harvest, and sentences about them.

use std::collections::BTreeMap;

use gfxpack_model::key_record::KeyRecord;
use serde_json::{Value, json};

use crate::text::{counted, joined};

/// The macro that tells composable kernels the processor, besides `-mcpu=`.
///
/// Source: ROCm/MIOpen 2d1fd997a, `get_ck_common_compiler_flag` in
/// ck_utility_common.hpp.
const OF_THE_PROCESSOR: &str = " -DCK_AMD_GPU_GFX";

/// Decides which keys a harvest takes, and counts them by kind.
#[derive(Debug, Default)]
pub struct HarvestSums {
    only_missed: bool,
    is_retargeted: bool,
    /// Keys that were read.
    pub read: u64,
    keys: u64,
    missed: u64,
    /// Keys that can't be compiled.
    uncompilable: u64,
    /// Keys with options that a solver chose for a certain processor.
    of_processor: u64,
    /// Keys left out since MIOpen never asks for them on the processor that they
    /// were retargeted to.
    not_for_processor: u64,
    devices: BTreeMap<String, u64>,
}

impl HarvestSums {
    /// With `only_missed`, takes only keys that MIOpen had to compile. With
    /// `is_retargeted`, takes only keys that MIOpen may ask for on the new
    /// processor.
    pub fn new(only_missed: bool, is_retargeted: bool) -> Self {
        Self { only_missed, is_retargeted, ..Self::default() }
    }

    /// Counts a key, and returns whether it is taken.
    pub fn take(&mut self, record: &KeyRecord) -> bool {
        self.read += 1;
        if self.only_missed && !record.counts.was_missing() {
            return false;
        }
        if self.is_retargeted && !may_exist(record) {
            self.not_for_processor += 1;
            return false;
        }
        self.keys += 1;
        self.missed += u64::from(record.counts.was_missing());
        self.uncompilable += u64::from(record.key.check().is_err());
        self.of_processor += u64::from(record.key.kernel_args.contains(OF_THE_PROCESSOR));
        let device = record.key.split_device().map_or("", |(_, device)| device);
        *self.devices.entry(device.to_owned()).or_default() += 1;
        true
    }

    /// The counts as a message; `file` has the keys, which come from so many files.
    pub fn message(&self, file: Option<String>, files: usize) -> Value {
        json!({
            "file": file, "keys": self.keys, "missed": self.missed,
            "uncompilable": self.uncompilable, "left_out": self.not_for_processor,
            "devices": self.devices, "files": files,
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
        if self.uncompilable > 0 {
            remarks.push(format!(
                "{} of them are of no source file that gfxpack compiles",
                self.uncompilable
            ));
        }
        if self.not_for_processor > 0 {
            remarks.push(format!(
                "{} left out: MIOpen does not ask for them on these processors",
                counted(self.not_for_processor, "key")
            ));
        }
        remarks
    }

    /// A warning about retargeted keys that may be wrong.
    pub fn warning(&self) -> Option<String> {
        (self.of_processor > 0 && self.is_retargeted && self.keys > 0).then(|| {
            format!(
                "{} with options that MIOpen chose for the processor it saw \
                 (-DCK_AMD_GPU_GFX…); those stay, and another processor asks with others",
                counted(self.of_processor, "key")
            )
        })
    }
}

/// Whether MIOpen may ask for the key on the processor named in it.
fn may_exist(record: &KeyRecord) -> bool {
    let processor = record.key.split_device().map(|(_, device)| device);
    match (record.key.source_name(), processor) {
        (Some(source), Some(processor)) => gfxpack_harvest::may_ask_for(source, processor),
        _ => true,
    }
}
