//! Statistics of a kdb: its content, and the bytes of keys, code objects and
//! repetitions.

use std::collections::{BTreeMap, HashSet};

use gfxpack_model::Language;

use crate::error::ReadError;
use crate::header::Header;
use crate::layout::Layout;
use crate::object_origin::NoteReader;
use crate::progress::Progress;
use crate::read::Reader;
use crate::row::RowInfo;

/// A summary of what a kdb holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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

/// A generator and a compiler that made rows.
pub type MadeBy = (String, String);

/// Sums over some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Number of rows.
    pub rows: u64,
    /// Number of rows that are stored raw.
    pub raw_rows: u64,
    /// Bytes of their blobs; shared blobs count once for each row.
    pub stored_bytes: u64,
    /// Bytes of their code objects; shared ones count once for each row.
    pub object_bytes: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Rows with the same code object as an earlier row.
    pub repeated_rows: u64,
    /// Bytes of the blobs of repeated rows.
    pub repeated_bytes: u64,
}

/// The bytes of a kdb by their use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// How rows are laid out.
    pub layout: Layout,
    /// All rows.
    pub all: Sums,
    /// Rows by kernel name.
    pub kernels: BTreeMap<String, Sums>,
    /// Rows by the size of their code object: index n counts those of 2^n to
    /// 2^(n+1) - 1 bytes.
    pub sizes: [u64; 40],
    /// Rows by compression ratio (stored size by object size), in twentieths;
    /// the last counts those of 95 % and more.
    pub ratios: [u64; 20],
}

impl Reader {
    /// Summarizes which keys the file holds. Only their index is read;
    /// [`Reader::stats`] counts bytes.
    ///
    /// # Errors
    /// As [`Reader::for_each_key`].
    pub fn info(&self) -> Result<Info, ReadError> {
        let mut info = Info {
            header: self.header(),
            file_bytes: self.file_bytes(),
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

    /// Counts the rows by generator and compiler; rows without an origin are
    /// left out.
    ///
    /// # Errors
    /// As [`Reader::count`].
    pub fn made_by(&self) -> Result<BTreeMap<MadeBy, u64>, ReadError> {
        let rows = self.count()?;
        let notes = NoteReader::open(self.file.connection());
        let notes = notes.map_err(|source| self.file.sqlite(source))?;
        let mut made_by: BTreeMap<MadeBy, u64> = BTreeMap::new();
        for (origin, rows) in notes.count(rows) {
            let by = (origin.generator.clone(), origin.compiler.clone());
            *made_by.entry(by).or_default() += rows;
        }
        Ok(made_by)
    }

    /// Counts the bytes of the file by their use. Blobs are not read;
    /// duplicates are recognised by the hashes that their rows declare.
    /// `progress` is called after every row.
    ///
    /// # Errors
    /// As [`Reader::for_each_row`].
    pub fn stats(&self, progress: Option<&dyn Fn(Progress)>) -> Result<Stats, ReadError> {
        let total = progress.map_or(Ok(0), |_| self.count())?;
        let mut stats = Stats {
            file_bytes: self.file_bytes(),
            layout: self.layout(),
            all: Sums::default(),
            kernels: BTreeMap::new(),
            sizes: [0; 40],
            ratios: [0; 20],
        };
        let mut seen: HashSet<u128> = HashSet::new();
        self.for_each_row(|entry| {
            // An invalid hash is never a duplicate.
            let hash =
                u128::from_str_radix(&entry.hash, 16).ok().filter(|_| entry.hash.len() == 32);
            let repeated = hash.is_some_and(|hash| !seen.insert(hash));
            stats.all.add(&entry, repeated);
            if let Some(sums) = stats.kernels.get_mut(&entry.key.kernel_name) {
                sums.add(&entry, repeated);
            } else {
                let mut sums = Sums::default();
                sums.add(&entry, repeated);
                stats.kernels.insert(entry.key.kernel_name, sums);
            }
            let power = entry.object_bytes.checked_ilog2().unwrap_or(0) as usize;
            stats.sizes[power.min(39)] += 1;
            let twentieth = 20 * entry.stored_bytes / entry.object_bytes.max(1);
            stats.ratios[(twentieth as usize).min(19)] += 1;
            if let Some(progress) = progress {
                progress(Progress::rows(stats.all.rows, total));
            }
            Ok::<(), ReadError>(())
        })?;
        Ok(stats)
    }
}

impl Stats {
    /// Kernels by the stored bytes of their rows, the largest first.
    #[must_use]
    pub fn largest_first(&self) -> Vec<(&str, &Sums)> {
        let mut kernels: Vec<(&str, &Sums)> =
            self.kernels.iter().map(|(name, sums)| (name.as_str(), sums)).collect();
        kernels.sort_by_key(|(name, sums)| (std::cmp::Reverse(sums.stored_bytes), *name));
        kernels
    }
}

impl Sums {
    fn add(&mut self, entry: &RowInfo, repeated: bool) {
        self.rows += 1;
        self.raw_rows += u64::from(!entry.compressed);
        self.stored_bytes = self.stored_bytes.saturating_add(entry.stored_bytes);
        self.object_bytes = self.object_bytes.saturating_add(entry.object_bytes);
        self.key_bytes += (entry.key.kernel_name.len() + entry.key.kernel_args.len()) as u64;
        if repeated {
            self.repeated_rows += 1;
            self.repeated_bytes = self.repeated_bytes.saturating_add(entry.stored_bytes);
        }
    }
}
