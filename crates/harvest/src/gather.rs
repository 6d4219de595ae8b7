//! Gathers keys from many inputs at a time, within a limit of memory.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gfxpack_model::key_record::KeyRecord;
use rayon::prelude::*;

use crate::error::HarvestError;
use crate::input::Input;
use crate::read;
use crate::report::FileReport;
use crate::runs::{self, Merge, Run};
use crate::table::{Table, Targets};

/// How keys are gathered.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options<'a> {
    /// Bytes that keys may take in memory. Never shows in the harvest.
    pub memory_bytes: usize,
    /// Processors that every key is rewritten for; none leaves keys as they
    /// are.
    pub retarget: Vec<String>,
    /// Where keys go that do not fit the memory.
    pub temporary: PathBuf,
    /// Largest code object that a kdb's row may claim, in bytes.
    pub max_object_bytes: u64,
    /// Called from any thread with bytes that were read.
    pub read: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Asked often; the harvest ends where it says yes.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            memory_bytes: 48 << 20,
            retarget: Vec::new(),
            temporary: std::env::temp_dir(),
            max_object_bytes: gfxpack_kdb::MAX_OBJECT_BYTES,
            read: None,
            cancelled: None,
        }
    }
}

/// What all threads share.
pub(crate) struct Shared<'a> {
    options: &'a Options<'a>,
    pub(crate) targets: Targets,
    tables: Mutex<Vec<Table>>,
    runs: Mutex<Vec<Run>>,
    /// What one table may take.
    limit: usize,
}

impl Shared<'_> {
    pub(crate) fn max_object_bytes(&self) -> u64 {
        self.options.max_object_bytes
    }

    /// # Errors
    /// [`HarvestError::Interrupted`].
    pub(crate) fn check(&self) -> Result<(), HarvestError> {
        match self.options.cancelled {
            Some(cancelled) if cancelled() => Err(HarvestError::Interrupted),
            _ => Ok(()),
        }
    }

    pub(crate) fn count(&self, bytes: u64) {
        if let Some(read) = self.options.read {
            read(bytes);
        }
    }

    /// Puts a table that has become too large aside.
    ///
    /// # Errors
    /// [`HarvestError::Temporary`].
    pub(crate) fn spill(&self, table: &mut Table) -> Result<(), HarvestError> {
        if table.bytes() < self.limit {
            return Ok(());
        }
        let directory = &self.options.temporary;
        let mut rows = table.take(&self.options.retarget, &self.targets).into_iter().peekable();
        // What differed in its processor alone may be the same now.
        let next = || {
            let Some(mut row) = rows.next() else { return Ok(None) };
            while let Some(same) = rows.next_if(|other| other.key == row.key) {
                row.add(&same);
            }
            Ok(Some(row))
        };
        let add = |run| {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs::push(&mut runs, run, directory)
        };
        Run::write(directory, next)
            .and_then(add)
            .map_err(|source| HarvestError::Temporary { directory: directory.clone(), source })
    }
}

/// What was gathered.
#[non_exhaustive]
pub struct Harvest {
    /// What was read of each input, in their order.
    pub files: Vec<FileReport>,
    /// The keys.
    pub keys: Keys,
}

/// The keys of a harvest, those that did not fit the memory in files that no
/// directory names.
pub struct Keys {
    merge: Merge,
    targets: Targets,
    temporary: PathBuf,
}

/// Gathers the keys of all inputs. Errors of single files are in their
/// reports; what was read of such a file before is in the harvest.
///
/// # Errors
/// [`HarvestError::Temporary`] or [`HarvestError::Interrupted`].
pub fn harvest(inputs: &[Input], options: &Options<'_>) -> Result<Harvest, HarvestError> {
    let threads = rayon::current_num_threads().min(inputs.len()).max(1);
    let shared = Shared {
        options,
        targets: Targets::default(),
        tables: Mutex::default(),
        runs: Mutex::default(),
        limit: options.memory_bytes / threads / options.retarget.len().max(1),
    };
    let one = |input: &Input| {
        let tables = || shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = tables().pop().unwrap_or_default();
        let report = read::keys(input, &mut table, &shared);
        tables().push(table);
        report
    };
    // One at a time, since any may be the large one.
    let mut files: Vec<FileReport> = inputs.par_iter().with_max_len(1).map(one).collect();
    let fatal = |report: &&mut FileReport| {
        report.error.as_ref().is_some_and(|error| !error.is_of_one_file())
    };
    if let Some(error) = files.iter_mut().find(fatal).and_then(|report| report.error.take()) {
        return Err(error);
    }
    let Shared { targets, tables, runs, .. } = shared;
    let mut tables = tables.into_inner().unwrap_or_else(PoisonError::into_inner);
    let memory = tables.iter_mut().map(|table| table.take(&options.retarget, &targets)).collect();
    let runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
    let temporary = options.temporary.clone();
    let merge = Merge::of(memory, runs)
        .map_err(|source| HarvestError::Temporary { directory: temporary.clone(), source })?;
    Ok(Harvest { files, keys: Keys { merge, targets, temporary } })
}

impl Keys {
    /// Hands every key to `each`, in ascending order.
    ///
    /// # Errors
    /// [`HarvestError::Temporary`], or what `each` says.
    pub fn for_each<E: From<HarvestError>>(
        mut self,
        mut each: impl FnMut(KeyRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |source: io::Error| HarvestError::Temporary {
            directory: self.temporary.clone(),
            source,
        };
        while let Some(row) = self.merge.next().map_err(failed)? {
            let targets = self.targets.names(&row.targets);
            each(KeyRecord { key: row.key(), counts: row.counts, targets })?;
        }
        Ok(())
    }
}
