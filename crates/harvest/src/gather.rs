//! Collects keys from many inputs in parallel, within a memory limit.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gfxpack_model::key_record::KeyRecord;
use rayon::prelude::*;

use super::options::Options;
use super::options::SharedState;
use crate::error::HarvestError;
use crate::input::Input;
use crate::read;
use crate::report::FileReport;
use crate::runs::Merge;
use crate::table::Targets;

/// The result of a harvest.
#[non_exhaustive]
pub struct Harvest {
    /// Report on each input, in the order of the inputs.
    pub files: Vec<FileReport>,
    /// The keys.
    pub keys: Keys,
}

/// The keys of a harvest. Those that did not fit into memory are in unnamed
/// temporary files.
pub struct Keys {
    merge: Merge,
    targets: Targets,
    temporary: PathBuf,
}

/// Collects the keys of all inputs. Errors of single files are in their
/// reports; what was read of such a file before the error is in the harvest.
///
/// # Errors
/// [`HarvestError::Temporary`] or [`HarvestError::Interrupted`].
pub fn harvest(inputs: &[Input], options: &Options<'_>) -> Result<Harvest, HarvestError> {
    let threads = rayon::current_num_threads().min(inputs.len()).max(1);
    let shared = SharedState {
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
    // One input per task, since any may be the largest.
    let mut files: Vec<FileReport> = inputs.par_iter().with_max_len(1).map(one).collect();
    let fatal = |report: &&mut FileReport| {
        report.error.as_ref().is_some_and(|error| !error.is_of_one_file())
    };
    if let Some(error) = files.iter_mut().find(fatal).and_then(|report| report.error.take()) {
        return Err(error);
    }
    let SharedState { targets, tables, runs, .. } = shared;
    let mut tables = tables.into_inner().unwrap_or_else(PoisonError::into_inner);
    let memory = tables.iter_mut().map(|table| table.take(&options.retarget, &targets)).collect();
    let runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
    let temporary = options.temporary.clone();
    let merge = Merge::new(memory, runs)
        .map_err(|source| HarvestError::Temporary { directory: temporary.clone(), source })?;
    Ok(Harvest { files, keys: Keys { merge, targets, temporary } })
}

impl Keys {
    /// Passes every key to `each`, in ascending order.
    ///
    /// # Errors
    /// [`HarvestError::Temporary`], or an error of `each`.
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
