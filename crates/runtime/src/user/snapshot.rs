//! Asking a private copy of a file that another program has open in WAL mode.

use std::io;

use gfxpack_kdb::{KdbSnapshot, ReadError};
use gfxpack_model::KernelKey;

use super::ask_error::AskError;
use super::file::UserFile;
use crate::clock;
use crate::mutex::lock;

/// The answer of the private copy, if there is one.
pub(super) enum SnapshotAnswer {
    /// There is no copy of the file as it is now.
    NoSnapshot,
    /// None where the copy does not have the key.
    Kernel(Option<Vec<u8>>),
    /// The copy can't be read.
    Failed(AskError),
}

impl UserFile {
    /// Asks the copy, if there is one of the file as it is now.
    pub(super) fn ask_snapshot(&self, key: &KernelKey) -> SnapshotAnswer {
        let mut copy = lock(&self.copy);
        if copy.is_none() {
            return SnapshotAnswer::NoSnapshot;
        }
        let Some(_inside) = self.gate.enter_shared() else { return SnapshotAnswer::NoSnapshot };
        copy.take_if(|copy| !copy.is_current());
        match copy.as_ref().map(|copy| copy.get(key)) {
            None => SnapshotAnswer::NoSnapshot,
            Some(Ok(kernel)) => SnapshotAnswer::Kernel(kernel),
            Some(Err(error)) => SnapshotAnswer::Failed(error.into()),
        }
    }

    /// Makes a copy, unless another thread just did, and asks it.
    pub(super) fn ask_new_snapshot(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, AskError> {
        let mut copy = lock(&self.copy);
        let path = self.check()?.join(&self.name);
        let Some(_alone) = self.gate.enter_exclusive() else {
            return Err(ReadError::Io { path, source: io::ErrorKind::TimedOut.into() }.into());
        };
        copy.take_if(|copy| !copy.is_current());
        if copy.is_none() {
            let (temp_dir, limit) = (&self.settings.temp_dir, self.settings.max_object_bytes);
            *copy = Some(KdbSnapshot::take(&path, temp_dir, limit, clock::now())?);
        }
        let found = copy.as_ref().map(|copy| copy.get(key)).transpose()?;
        Ok(found.flatten())
    }
}
