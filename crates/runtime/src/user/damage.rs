//! What becomes of a file that seems damaged: nothing, unless its bytes are.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{DamagedKdb, Fault, ReadError, UserKdb};
use gfxpack_model::KernelKey;

use super::{UserFile, missed};
use crate::file_system::Identity;
use crate::key_lock::KeyLock;
use crate::miss::MissReason;
use crate::{aside, trust};

/// What a file that seemed damaged is at a second look.
pub(super) enum SecondLook {
    /// Damaged, and now of this name.
    MovedTo(PathBuf),
    /// Gone: another thread or process has moved it.
    Gone,
    Whole,
}

impl UserFile {
    /// The reason for a miss, after what is to be done about it.
    pub(super) fn faulty(&self, file: Identity, error: ReadError, key: &KernelKey) -> MissReason {
        if !is_damage(error.fault()) || self.settings.look_only {
            return missed(error);
        }
        let Ok(directory) = trust::check_directory(&self.directory, self.group()) else {
            return missed(error);
        };
        let get = |kdb: UserKdb| kdb.get(key).map(drop).map_err(|error| error.fault());
        match self.second_look(&directory, file, get) {
            Ok(SecondLook::MovedTo(kept_as)) => MissReason::MovedAside { kept_as, source: error },
            Ok(SecondLook::Gone) => missed(error),
            Ok(SecondLook::Whole) => {
                missed(ReadError::Transient { path: self.path(), source: Box::new(error) })
            }
            // Others use it, or part of it lies beside it.
            Err(second) if !is_io(&second) => missed(error),
            Err(second) => missed(second),
        }
    }

    /// Looks at the file once more, and renames it if its bytes are damaged:
    /// those that were read, with which what failed must fail again.
    ///
    /// # Errors
    /// What keeps it from being looked at or renamed. It is as it was then.
    pub(super) fn second_look(
        &self,
        directory: &Path,
        file: Identity,
        again: impl FnOnce(UserKdb) -> Result<(), Fault>,
    ) -> Result<SecondLook, ReadError> {
        let path = directory.join(&self.name);
        let io = |source| ReadError::Io { path: path.clone(), source };
        let (name, wait) = (format!("{}.aside", self.name), self.settings.busy);
        let held = KeyLock::acquire(directory, &name, wait);
        // Closing the file drops the locks that this process has on it.
        let alone = held.as_ref().and_then(|_| self.gate.alone());
        if alone.is_none() {
            return Err(io(io::ErrorKind::TimedOut.into()));
        }
        if Identity::of_name(&path).ok() != Some(file) {
            return Ok(SecondLook::Gone);
        }
        let fails = |kdb: Result<UserKdb, ReadError>| {
            let again = kdb.map_err(|error| error.fault()).and_then(again);
            again.is_err_and(is_damage)
        };
        match DamagedKdb::confirm(&path, &self.options(wait), fails)? {
            None => Ok(SecondLook::Whole),
            // Nobody gets at it until it has its new name.
            Some(_damaged) => aside::rename(&path).map(SecondLook::MovedTo).map_err(io),
        }
    }
}

/// Whether the system could not read the file, as against somebody who keeps it
/// locked.
fn is_io(error: &ReadError) -> bool {
    use io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error, ReadError::Io { source, .. } if !matches!(source.kind(), TimedOut | WouldBlock))
}

/// Whether the file as a whole is no kdb.
pub(super) fn is_damage(fault: Fault) -> bool {
    matches!(fault, Fault::Corrupt | Fault::TooSmall | Fault::Schema)
}
