//! Stores a kernel into the user's kdb.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use gfxpack_kdb::{KdbSnapshot, UserKdb};
use gfxpack_model::KernelKey;

use super::damage::DamageCheck;
use super::error::UserError;
use super::file::{Connection, UserFile, now};
use super::waiting::Access;
use crate::file_system::FileIdentity;
use crate::miss::MissReason;
use crate::mutex::lock;
use crate::sqlite_gate;
use crate::trust;

/// Pause between two attempts to store into a file that another program has
/// open in WAL mode. MIOpen keeps it open for milliseconds.
const LIVE_PAUSE: Duration = Duration::from_millis(5);

impl UserFile {
    /// Stores a code object. If the file is damaged, it is quarantined,
    /// `moved_aside` is called, and a new file is started.
    ///
    /// # Errors
    /// [`UserError`]; the file is then unchanged.
    pub(crate) fn store(
        &self,
        key: &KernelKey,
        code_object: &[u8],
        wait_budget: &Cell<Duration>,
        moved_aside: impl FnMut(&MissReason),
    ) -> Result<(), UserError> {
        let store = |wait| self.store_within(key, code_object, wait, moved_aside);
        self.busy_history.waiting(Access::Store, wait_budget, store, UserError::is_busy)
    }

    fn store_within(
        &self,
        key: &KernelKey,
        code_object: &[u8],
        wait: Duration,
        mut moved_aside: impl FnMut(&MissReason),
    ) -> Result<(), UserError> {
        let directory = trust::make_directory(&self.directory)?;
        let path = directory.join(&self.name);
        let mut again = true;
        loop {
            if path.symlink_metadata().is_ok() {
                trust::check_file(&path, self.group())?;
            }
            let before = FileIdentity::of_link(&path).ok();
            let stored = self.store_when_closed(&directory, key, code_object, wait);
            let Err(error) = stored else { return Ok(()) };
            let file = FileIdentity::of_link(&path).ok();
            let replaced = before.is_some() && before != file;
            let damaged = error.of_file().is_some_and(|error| error.kind().is_damage());
            if !again || !(replaced || damaged) {
                return Err(error);
            }
            again = false;
            let Some(file) = file.filter(|_| !replaced) else { continue };
            let store = |mut kdb: UserKdb| {
                kdb.store(key, code_object, 0, &[]).map(drop).map_err(|error| error.kind())
            };
            match self.check_damage(&directory, file, store) {
                Ok(DamageCheck::Quarantined(kept_as)) => {
                    let source = error.into_read()?;
                    moved_aside(&MissReason::MovedAside { kept_as, source });
                }
                Ok(DamageCheck::Gone) => {}
                Ok(DamageCheck::Whole) => {
                    return Err(UserError::Open(error.into_read()?.transient()));
                }
                Err(_) => return Err(error),
            }
        }
    }

    /// Stores as soon as no program has the file open in WAL mode.
    fn store_when_closed(
        &self,
        directory: &Path,
        key: &KernelKey,
        code_object: &[u8],
        wait: Duration,
    ) -> Result<(), UserError> {
        let path = directory.join(&self.name);
        let began = Instant::now();
        loop {
            let left = wait.saturating_sub(began.elapsed());
            match self.store_once(directory, &path, key, code_object, left) {
                Err(error) if error.is_busy() && !left.is_zero() && KdbSnapshot::has_log(&path) => {
                    std::thread::sleep(LIVE_PAUSE.min(left));
                }
                stored => return stored,
            }
        }
    }

    fn store_once(
        &self,
        directory: &Path,
        path: &Path,
        key: &KernelKey,
        code_object: &[u8],
        wait: Duration,
    ) -> Result<(), UserError> {
        let Some(_inside) = self.gate.enter_shared() else {
            return Err(UserError::Open(sqlite_gate::forked(&self.path())));
        };
        let pooled = FileIdentity::of_link(path).ok().and_then(|file| self.take(file, wait));
        let connection = match pooled {
            Some(connection) => connection,
            None => self.open(directory, wait)?,
        };
        let Connection::Write(mut kdb) = connection else {
            return Err(UserError::ReadOnly(path.to_owned()));
        };
        let used: Vec<(KernelKey, u64)> = lock(&self.used).drain().collect();
        if let Err(error) = kdb.store(key, code_object, now(), &used) {
            self.note_later(used);
            return Err(UserError::Write(error));
        }
        if let Ok(file) = FileIdentity::of_link(path) {
            self.give(file, Connection::Write(kdb));
        }
        Ok(())
    }
}
