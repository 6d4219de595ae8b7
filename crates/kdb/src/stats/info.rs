//! A summary of what a kdb holds.

use std::collections::BTreeMap;

use gfxpack_model::Language;

use crate::error::ReadError;
use crate::header::Header;
use crate::read::Reader;
use crate::row_info::RowInfo;

/// A summary of what a kdb holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// What the SQLite header says: page size, journal mode, version.
    pub header: Header,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Kernels.
    pub rows: u64,
    /// Those of them that are stored raw.
    pub raw_rows: u64,
    /// Bytes of all blobs as stored.
    pub stored_bytes: u64,
    /// Bytes of all code objects, as the rows declare.
    pub object_bytes: u64,
    /// Distinct kernel names.
    pub kernel_names: u64,
    /// Kernels by source language; `None` for those of other languages.
    pub languages: BTreeMap<Option<Language>, u64>,
    /// Kernels by the device of their ` -mcpu=`; empty for those without.
    pub devices: BTreeMap<String, u64>,
}

impl Reader {
    /// Sums up what the file holds. Blobs are not read.
    ///
    /// # Errors
    /// As [`Reader::for_each_row`].
    pub fn info(&self) -> Result<Info, ReadError> {
        let mut collect = Collect::new(self.header(), self.file_bytes());
        self.for_each_row(|entry| {
            collect.add(&entry);
            Ok::<(), ReadError>(())
        })?;
        Ok(collect.finish())
    }
}

/// What made rows: a generator and a compiler.
pub type MadeBy = (String, String);

impl Reader {
    /// How many rows were made by what, of those that say it.
    ///
    /// # Errors
    /// As [`Reader::for_each_origin`].
    pub fn made_by(&self) -> Result<BTreeMap<MadeBy, u64>, ReadError> {
        let mut made_by: BTreeMap<MadeBy, u64> = BTreeMap::new();
        self.for_each_origin(|_, origin| {
            if let Some(origin) = origin {
                let by = (origin.generator.clone(), origin.compiler.clone());
                *made_by.entry(by).or_default() += 1;
            }
            Ok::<(), ReadError>(())
        })?;
        Ok(made_by)
    }
}

/// Adds entries up, which must come ordered by name.
pub(crate) struct Collect {
    info: Info,
    last_name: Option<String>,
}

impl Collect {
    pub(crate) fn new(header: Header, file_bytes: u64) -> Self {
        let info = Info {
            header,
            file_bytes,
            rows: 0,
            raw_rows: 0,
            stored_bytes: 0,
            object_bytes: 0,
            kernel_names: 0,
            languages: BTreeMap::new(),
            devices: BTreeMap::new(),
        };
        Self { info, last_name: None }
    }

    pub(crate) fn add(&mut self, entry: &RowInfo) {
        let info = &mut self.info;
        info.rows += 1;
        info.raw_rows += u64::from(!entry.compressed);
        info.stored_bytes = info.stored_bytes.saturating_add(entry.stored_bytes);
        info.object_bytes = info.object_bytes.saturating_add(entry.object_bytes);
        if self.last_name.as_deref() != Some(&entry.key.kernel_name) {
            info.kernel_names += 1;
            self.last_name = Some(entry.key.kernel_name.clone());
        }
        let language = entry.key.source_name().and_then(Language::of_source);
        *info.languages.entry(language).or_default() += 1;
        let device = entry.key.split_device().map_or("", |(_, device)| device);
        if let Some(count) = info.devices.get_mut(device) {
            *count += 1;
        } else {
            info.devices.insert(device.to_owned(), 1);
        }
    }

    pub(crate) fn finish(self) -> Info {
        self.info
    }
}
