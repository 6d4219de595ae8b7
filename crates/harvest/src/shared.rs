//! How keys are gathered, and what all threads that do share.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::error::HarvestError;
use crate::runs::{self, Run};
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
    pub(crate) options: &'a Options<'a>,
    pub(crate) targets: Targets,
    pub(crate) tables: Mutex<Vec<Table>>,
    pub(crate) runs: Mutex<Vec<Run>>,
    /// What one table may take.
    pub(crate) limit: usize,
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
