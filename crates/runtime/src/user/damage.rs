//! Quarantines a damaged user's kdb, after confirming the damage.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{DamagedKdb, KdbErrorKind, ReadError, UserKdb};
use gfxpack_model::KernelKey;

use super::file::UserFile;
use crate::file_system::FileIdentity;
use crate::key_lock::KeyLock;
use crate::miss::MissReason;
use crate::{quarantine, trust};

/// The result of checking a file that seemed damaged.
pub(super) enum DamageCheck {
    /// It is damaged, and was renamed to this path.
    Quarantined(PathBuf),
    /// It no longer exists: another thread or process has renamed it.
    Gone,
    Whole,
}

impl UserFile {
    /// The reason for a miss; a damaged file is quarantined first.
    pub(super) fn faulty(
        &self,
        file: FileIdentity,
        error: ReadError,
        key: &KernelKey,
    ) -> MissReason {
        if !error.kind().is_damage() || self.options.look_only {
            return MissReason::of(error);
        }
        let Ok(directory) = trust::check_directory(&self.directory, self.group()) else {
            return MissReason::of(error);
        };
        let get = |kdb: UserKdb| kdb.get(key).map(drop).map_err(|error| error.kind());
        match self.check_damage(&directory, file, get) {
            Ok(DamageCheck::Quarantined(kept_as)) => {
                MissReason::MovedAside { kept_as, source: error }
            }
            Ok(DamageCheck::Gone) => MissReason::of(error),
            Ok(DamageCheck::Whole) => MissReason::of(error.transient()),
            // Others use it, or part of it is in a journal or log.
            Err(second) if !is_io(&second) => MissReason::of(error),
            Err(second) => MissReason::of(second),
        }
    }

    /// Reads the file's bytes again, and renames the file if `again`, the
    /// operation that failed, fails on them too.
    ///
    /// # Errors
    /// An error that prevents checking or renaming the file. It is then
    /// unchanged.
    pub(super) fn check_damage(
        &self,
        directory: &Path,
        file: FileIdentity,
        again: impl FnOnce(UserKdb) -> Result<(), KdbErrorKind>,
    ) -> Result<DamageCheck, ReadError> {
        let path = directory.join(&self.name);
        let io = |source| ReadError::io(&path, source);
        let (name, wait) = (format!("{}.aside", self.name), self.options.busy);
        let held = KeyLock::acquire(directory, &name, wait);
        // Closing the file drops the locks that this process has on it.
        let alone = held.as_ref().and_then(|_| self.gate.enter_exclusive());
        if alone.is_none() {
            return Err(io(io::ErrorKind::TimedOut.into()));
        }
        if FileIdentity::of_link(&path).ok() != Some(file) {
            return Ok(DamageCheck::Gone);
        }
        let fails = |kdb: Result<UserKdb, ReadError>| {
            let again = kdb.map_err(|error| error.kind()).and_then(again);
            again.is_err_and(KdbErrorKind::is_damage)
        };
        match DamagedKdb::confirm(&path, &self.options, fails)? {
            None => Ok(DamageCheck::Whole),
            // The file stays locked until it has its new name.
            Some(_damaged) => quarantine::rename(&path).map(DamageCheck::Quarantined).map_err(io),
        }
    }
}

/// Whether the system could not read the file; false if somebody keeps it
/// locked.
fn is_io(error: &ReadError) -> bool {
    use io::ErrorKind::{TimedOut, WouldBlock};
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| !matches!(source.kind(), TimedOut | WouldBlock))
}
