//! Options of a harvest, and the state that its threads share.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::error::HarvestError;
use crate::runs::{self, Merge, Run};
use crate::table::{Table, Targets};

/// Options of a harvest.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options<'a> {
    /// Bytes that keys may take in memory. Has no effect on the result.
    pub memory_bytes: usize,
    /// Processors for which every key is rewritten; if empty, keys are
    /// unchanged.
    pub retarget: Vec<String>,
    /// Directory for keys that do not fit into memory.
    pub temporary: PathBuf,
    /// Largest code object that a kdb's row may claim, in bytes.
    pub max_object_bytes: u64,
    /// Called from any thread with the number of bytes read.
    pub read: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Called often to ask whether to stop.
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

impl Options<'_> {
    /// # Errors
    /// [`HarvestError::Interrupted`].
    pub(crate) fn check(&self) -> Result<(), HarvestError> {
        match self.cancelled {
            Some(cancelled) if cancelled() => Err(HarvestError::Interrupted),
            _ => Ok(()),
        }
    }

    pub(crate) fn count(&self, bytes: u64) {
        if let Some(read) = self.read {
            read(bytes);
        }
    }
}

/// The state that all threads share.
pub(crate) struct SharedState<'a> {
    pub(crate) options: &'a Options<'a>,
    pub(crate) targets: Targets,
    pub(crate) tables: Mutex<Vec<Table>>,
    pub(crate) runs: Mutex<Vec<Run>>,
    /// Memory that one table may take, in bytes.
    pub(crate) limit: usize,
}

impl SharedState<'_> {
    /// Writes a table that has become too large to a file.
    ///
    /// # Errors
    /// [`HarvestError::Temporary`].
    pub(crate) fn spill(&self, table: &mut Table) -> Result<(), HarvestError> {
        if table.bytes() < self.limit {
            return Ok(());
        }
        let directory = &self.options.temporary;
        let rows = table.take(&self.options.retarget, &self.targets);
        let add = |run| {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs::push(&mut runs, run, directory)
        };
        // Keys that differed only in their processor may now be equal.
        Merge::new(vec![rows], Vec::new())
            .and_then(|merge| Run::write(directory, merge))
            .and_then(add)
            .map_err(|source| HarvestError::Temporary { directory: directory.clone(), source })
    }
}
