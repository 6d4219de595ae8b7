//! Reads a private copy of a file that another program has open in WAL mode.

use std::io;

use gfxpack_kdb::{KdbSnapshot, ReadError};
use gfxpack_model::KernelKey;

use super::error::UserError;
use super::file::UserFile;
use crate::clock;
use crate::miss::MissReason;
use crate::mutex::lock;

impl UserFile {
    /// Looks the key up in the copy. `None` if there is none of the current file.
    ///
    /// # Errors
    /// If the copy has no kernel for the key, or can't be read.
    pub(super) fn ask_snapshot(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, MissReason> {
        let mut copy = lock(&self.copy);
        if copy.is_none() {
            return Ok(None);
        }
        let Some(_inside) = self.gate.enter_shared() else { return Ok(None) };
        copy.take_if(|copy| !copy.is_current());
        let Some(copy) = copy.as_ref() else { return Ok(None) };
        copy.get(key).map_err(MissReason::of)?.map(Some).ok_or(MissReason::NoKernel)
    }

    /// Makes a copy, unless another thread just did, and looks the key up in
    /// it.
    pub(super) fn ask_new_snapshot(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, UserError> {
        let mut copy = lock(&self.copy);
        let path = self.check()?.join(&self.name);
        let Some(_alone) = self.gate.enter_exclusive() else {
            return Err(ReadError::io(&path, io::ErrorKind::TimedOut.into()).into());
        };
        copy.take_if(|copy| !copy.is_current());
        if copy.is_none() {
            *copy = Some(KdbSnapshot::take(&path, &self.temp_dir, clock::now())?);
        }
        let found = copy.as_ref().map(|copy| copy.get(key)).transpose()?;
        Ok(found.flatten())
    }
}
