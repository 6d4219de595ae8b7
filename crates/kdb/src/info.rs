//! A summary of what a kdb holds.

use std::collections::BTreeMap;

use gfxpack_model::Language;

use crate::error::ReadError;
use crate::header::Header;
use crate::read::Reader;

/// A summary of what a kdb holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The fields of the SQLite header: page size, journal mode, version.
    pub header: Header,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Number of kernels.
    pub rows: u64,
    /// Number of distinct kernel names.
    pub kernel_names: u64,
    /// Kernels by source language; `None` for those of other languages.
    pub languages: BTreeMap<Option<Language>, u64>,
    /// Kernels by the device of their ` -mcpu=`; empty if there is none.
    pub devices: BTreeMap<String, u64>,
}

impl Reader {
    /// Summarizes which keys the file holds. Only their index is read.
    pub fn info(&self) -> Result<Info, ReadError> {
        let mut info = Info {
            header: self.header(),
            file_bytes: self.file_bytes,
            rows: 0,
            kernel_names: 0,
            languages: BTreeMap::new(),
            devices: BTreeMap::new(),
        };
        let mut last_name: Option<String> = None;
        self.for_each_key(|key| {
            info.rows += 1;
            let language = key.source_name().and_then(Language::of_source);
            *info.languages.entry(language).or_default() += 1;
            let device = key.split_device().map_or("", |(_, device)| device);
            if let Some(count) = info.devices.get_mut(device) {
                *count += 1;
            } else {
                info.devices.insert(device.to_owned(), 1);
            }
            // Keys come ordered by name.
            if last_name.as_ref() != Some(&key.kernel_name) {
                info.kernel_names += 1;
                last_name = Some(key.kernel_name);
            }
            Ok::<(), ReadError>(())
        })?;
        Ok(info)
    }
}
