//! A summary of what a kdb holds.

use std::collections::BTreeMap;

use gfxpack_model::{KernelKey, Language};

use crate::error::ReadError;
use crate::header::Header;
use crate::origin::NoteReader;
use crate::read::Reader;

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
    /// Distinct kernel names.
    pub kernel_names: u64,
    /// Kernels by source language; `None` for those of other languages.
    pub languages: BTreeMap<Option<Language>, u64>,
    /// Kernels by the device of their ` -mcpu=`; empty for those without.
    pub devices: BTreeMap<String, u64>,
}

impl Reader {
    /// Sums up which keys the file holds. Nothing is read but their index;
    /// [`Reader::stats`] counts bytes.
    ///
    /// # Errors
    /// As [`Reader::for_each_key`].
    pub fn info(&self) -> Result<Info, ReadError> {
        let mut collect = Collect::new(self.header(), self.file_bytes());
        self.for_each_key(|key| {
            collect.add(&key);
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
    /// As [`Reader::count`].
    pub fn made_by(&self) -> Result<BTreeMap<MadeBy, u64>, ReadError> {
        let rows = self.count()?;
        let connection = self.connection();
        let counts = NoteReader::open(connection).and_then(|it| it.count(connection, rows));
        let mut made_by: BTreeMap<MadeBy, u64> = BTreeMap::new();
        for (origin, rows) in counts.map_err(|source| self.sqlite(source))? {
            let by = (origin.generator.clone(), origin.compiler.clone());
            *made_by.entry(by).or_default() += rows;
        }
        Ok(made_by)
    }
}

/// Adds keys up, which must come ordered by name.
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
            kernel_names: 0,
            languages: BTreeMap::new(),
            devices: BTreeMap::new(),
        };
        Self { info, last_name: None }
    }

    pub(crate) fn add(&mut self, key: &KernelKey) {
        let info = &mut self.info;
        info.rows += 1;
        if self.last_name.as_deref() != Some(&key.kernel_name) {
            info.kernel_names += 1;
            self.last_name = Some(key.kernel_name.clone());
        }
        let language = key.source_name().and_then(Language::of_source);
        *info.languages.entry(language).or_default() += 1;
        let device = key.split_device().map_or("", |(_, device)| device);
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
