//! Looks a kernel up in the user's kdb, or in a private copy while another program has it open in
//! WAL mode.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::time::Duration;

use gfxpack_kdb::{KdbErrorKind, KdbSnapshot, ReadError};
use gfxpack_model::KernelKey;

use super::error::UserError;
use super::file::{Connection, UserFile};
use super::waiting::Access;
use crate::file_system::FileIdentity;
use crate::miss::MissReason;
use crate::mutex::lock;
use crate::sqlite_gate;

impl UserFile {
    /// The code object of a key, checked against its hash. A damaged file is
    /// quarantined.
    pub(crate) fn get(
        &self,
        key: &KernelKey,
        wait_budget: &Cell<Duration>,
    ) -> Result<Vec<u8>, MissReason> {
        let get = |wait| self.get_within(key, wait);
        self.busy_history.waiting(Access::Read, wait_budget, get, MissReason::is_busy)
    }

    fn get_within(&self, key: &KernelKey, wait: Duration) -> Result<Vec<u8>, MissReason> {
        let path = self.path();
        let file = match FileIdentity::of_link(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(MissReason::NoFile);
            }
            Err(source) => return Err(MissReason::of(ReadError::io(&path, source))),
        };
        if let Some(object) = self.ask_snapshot(key)? {
            return Ok(object);
        }
        let mut answer = self.ask(file, key, wait);
        if matches!(&answer, Err(UserError::Open(error)) if is_live(error, &path)) {
            match self.ask_new_snapshot(key) {
                // The other program has just closed it.
                Err(UserError::Open(_)) if !KdbSnapshot::has_log(&path) => {
                    answer = self.ask(file, key, wait);
                }
                // A problem with a copy is not a problem of the file.
                answer => return answer?.ok_or(MissReason::NoKernel),
            }
        }
        match answer {
            Err(UserError::Open(error)) => Err(self.faulty(file, error, key)),
            answer => answer?.ok_or(MissReason::NoKernel),
        }
    }

    /// Looks the key up in the file itself.
    fn ask(
        &self,
        file: FileIdentity,
        key: &KernelKey,
        wait: Duration,
    ) -> Result<Option<Vec<u8>>, UserError> {
        let _inside = self.gate.enter_shared().ok_or_else(|| sqlite_gate::forked(&self.path()))?;
        let connection = match self.take(file, wait) {
            Some(connection) => connection,
            None => self.open(&self.check()?, wait)?,
        };
        let found = match &connection {
            Connection::Write(kdb) => kdb.get(key),
            Connection::Read(reader) => reader.get(key),
        }?;
        let connection = match found {
            Some(_) => self.note_use(connection, key),
            None => Some(connection),
        };
        if let Some(connection) = connection {
            self.give(file, connection);
        }
        Ok(found)
    }

    /// Looks the key up in the copy. `None` if there is none of the current file.
    ///
    /// # Errors
    /// If the copy has no kernel for the key, or can't be read.
    fn ask_snapshot(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, MissReason> {
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
    fn ask_new_snapshot(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, UserError> {
        let mut copy = lock(&self.copy);
        let path = self.check()?.join(&self.name);
        let Some(_alone) = self.gate.enter_exclusive() else {
            return Err(ReadError::io(&path, io::ErrorKind::TimedOut.into()).into());
        };
        copy.take_if(|copy| !copy.is_current());
        if copy.is_none() {
            *copy = Some(KdbSnapshot::take(&path, &self.temp_dir)?);
        }
        let found = copy.as_ref().map(|copy| copy.get(key)).transpose()?;
        Ok(found.flatten())
    }
}

/// Whether a private copy may have what the file did not provide: another
/// program has the file open in WAL mode.
fn is_live(error: &ReadError, path: &Path) -> bool {
    matches!(error.kind(), KdbErrorKind::Busy | KdbErrorKind::Journal) && KdbSnapshot::has_log(path)
}
