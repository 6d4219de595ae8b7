//! The user's kdb of one device: found, trusted, read, written, and replaced
//! when it is damaged.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gfxpack_kdb::{Fault, ReadError, ReadOptions, Reader, UserKdb, UserOptions, WriteError};
use gfxpack_plan::KernelKey;
use gfxpack_plan::digest::Hasher;

use crate::file_system::{self, Identity};
use crate::key_lock::KeyLock;
use crate::miss::MissReason;
use crate::patience::Patience;
use crate::pool::Pool;
use crate::trust::{self, GroupWrite, Untrusted};
use crate::{aside, clock, lock};

/// Uses that are noted in one transaction.
const NOTED_TOGETHER: usize = 256;

/// For how long nobody waits again for a file, after one waited in vain: who
/// had it locked that long most likely keeps it, and each kernel would wait.
const NO_WAIT_AFTER_BUSY: Duration = Duration::from_secs(60);

/// How a user's kdb is used.
#[derive(Debug, Clone)]
pub(crate) struct UserSettings {
    pub(crate) max_object_bytes: u64,
    pub(crate) limit_bytes: u64,
    /// Waited for others who move a damaged file aside.
    pub(crate) busy: Duration,
    /// Nothing is made, changed or moved.
    pub(crate) look_only: bool,
}

/// One user's kdb, which may come, change and go.
pub(crate) struct UserFile {
    directory: PathBuf,
    name: String,
    settings: UserSettings,
    connections: Pool<Connection>,
    /// When kernels were used since that was last written down.
    used: Mutex<HashMap<KernelKey, u64>>,
    busy_since: Mutex<BusySince>,
}

/// When somebody waited in vain, if nobody has got at the file since. Others
/// may let it be read and not be written.
#[derive(Default)]
struct BusySince {
    reading: Option<Instant>,
    storing: Option<Instant>,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Read,
    Store,
}

enum Connection {
    /// Writes, unless nothing is to be changed.
    Write(UserKdb),
    /// The file or its directory can't be written to.
    Read(Reader),
}

/// Why a kernel could not be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("failed to use the user's kernel cache")]
    Untrusted(#[from] Untrusted),
    #[error("failed to open the user's kdb")]
    Open(#[from] ReadError),
    #[error("failed to write the user's kdb")]
    Write(#[from] WriteError),
    #[error("failed to move the damaged `{}` aside", path.display())]
    Aside { path: PathBuf, source: io::Error },
    #[error("failed to write `{}`: it can only be read", .0.display())]
    ReadOnly(PathBuf),
}

impl UserFile {
    pub(crate) fn new(directory: PathBuf, name: String, settings: UserSettings) -> Self {
        let (used, busy_since) = (Mutex::default(), Mutex::default());
        Self { directory, name, settings, connections: Pool::new(), used, busy_since }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The code object of a key, held against its hash. A file that is no kdb
    /// is moved aside.
    pub(crate) fn get(&self, key: &KernelKey, patience: &Patience) -> Result<Vec<u8>, MissReason> {
        let get = |wait| self.get_within(key, wait);
        self.waiting(
            To::Read,
            patience,
            get,
            |answer| matches!(answer, Err(reason) if reason.is_busy()),
        )
    }

    /// Does something that waits for others: as long as there is patience, but
    /// not at all if another did in vain a while ago.
    fn waiting<T>(
        &self,
        to: To,
        patience: &Patience,
        act: impl FnOnce(Duration) -> T,
        is_busy: impl FnOnce(&T) -> bool,
    ) -> T {
        let in_vain = lock(&self.busy_since).forbids_to_wait(to);
        let wait = if in_vain { Duration::ZERO } else { patience.left() };
        let began = Instant::now();
        let answer = act(wait);
        patience.spend(began.elapsed());
        if !is_busy(&answer) {
            lock(&self.busy_since).set(to, None);
        } else if !wait.is_zero() {
            lock(&self.busy_since).set(to, Some(Instant::now()));
        }
        answer
    }

    fn get_within(&self, key: &KernelKey, wait: Duration) -> Result<Vec<u8>, MissReason> {
        let path = self.path();
        let file = match Identity::of_name(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(MissReason::NoFile);
            }
            Err(source) => return Err(unreadable(ReadError::Io { path, source })),
        };
        let connection = match self.take(file, wait) {
            Some(connection) => connection,
            None => {
                let directory = self.check_directory().map_err(MissReason::Untrusted)?;
                let path = directory.join(&self.name);
                trust::check_file(&path, self.group()).map_err(MissReason::Untrusted)?;
                self.open(&directory, wait).map_err(|error| self.faulty(file, error))?
            }
        };
        let answer = match &connection {
            Connection::Write(kdb) => kdb.get(key),
            Connection::Read(reader) => reader.get(key),
        };
        match answer {
            Ok(Some(code_object)) => {
                let connection = self.note_use(connection, key);
                self.give(file, connection);
                Ok(code_object)
            }
            Ok(None) => {
                self.give(file, connection);
                Err(MissReason::NoKernel)
            }
            Err(error) => Err(self.faulty(file, error)),
        }
    }

    /// Stores a code object. A damaged file is moved aside, and said to be; a
    /// new one is then started.
    ///
    /// # Errors
    /// [`StoreError`]; the file is as it was.
    pub(crate) fn store(
        &self,
        key: &KernelKey,
        code_object: &[u8],
        patience: &Patience,
        moved_aside: impl FnMut(&MissReason),
    ) -> Result<(), StoreError> {
        let store = |wait| self.store_within(key, code_object, wait, moved_aside);
        self.waiting(
            To::Store,
            patience,
            store,
            |stored| matches!(stored, Err(error) if error.is_busy()),
        )
    }

    fn store_within(
        &self,
        key: &KernelKey,
        code_object: &[u8],
        wait: Duration,
        mut moved_aside: impl FnMut(&MissReason),
    ) -> Result<(), StoreError> {
        let directory = trust::make_directory(&self.directory)?;
        let path = directory.join(&self.name);
        let mut again = true;
        loop {
            if path.symlink_metadata().is_ok() {
                trust::check_file(&path, self.group())?;
            }
            let before = Identity::of_name(&path).ok();
            let stored = self.store_once(&directory, &path, key, code_object, wait);
            let Err(error) = stored else { return Ok(()) };
            let file = Identity::of_name(&path).ok();
            let replaced = before.is_some() && before != file;
            if !again || !(replaced || error.is_damage()) {
                return Err(error);
            }
            again = false;
            let Some(file) = file.filter(|_| !replaced) else { continue };
            let io = |source| StoreError::Aside { path: path.clone(), source };
            if let Some(kept_as) = self.move_aside(&directory, file).map_err(io)? {
                let source = error.into_read_error(&path);
                moved_aside(&MissReason::MovedAside { kept_as, source });
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
    ) -> Result<(), StoreError> {
        let pooled = Identity::of_name(path).ok().and_then(|file| self.take(file, wait));
        let connection = match pooled {
            Some(connection) => connection,
            None => self.open(directory, wait)?,
        };
        let Connection::Write(mut kdb) = connection else {
            return Err(StoreError::ReadOnly(path.to_owned()));
        };
        let used: Vec<(KernelKey, u64)> = lock(&self.used).drain().collect();
        if let Err(error) = kdb.store(key, code_object, clock::now(), &used) {
            self.note_later(used);
            return Err(error.into());
        }
        if let Ok(file) = Identity::of_name(path) {
            self.give(file, Connection::Write(kdb));
        }
        Ok(())
    }

    /// The lock for compiling a key, so that one process does it; none where
    /// it could not be had.
    pub(crate) fn lock_key(&self, key: &KernelKey, wait: Duration) -> Option<KeyLock> {
        let directory = trust::make_directory(&self.directory).ok()?;
        let name = Hasher::new("kernel")
            .field(self.name.as_bytes())
            .field(key.kernel_name.as_bytes())
            .field(key.kernel_args.as_bytes())
            .finish();
        KeyLock::acquire(&directory, &name.to_string(), wait)
    }

    /// An idle connection to that very file, which will wait for others.
    fn take(&self, file: Identity, wait: Duration) -> Option<Connection> {
        let mut connection = self.connections.take(file)?;
        if let Connection::Write(kdb) = &mut connection {
            kdb.set_busy(wait);
        }
        Some(connection)
    }

    /// Keeps a connection for the next use. One that only looks is closed.
    fn give(&self, file: Identity, connection: Connection) {
        if !self.settings.look_only {
            self.connections.give(file, connection);
        }
    }

    fn group(&self) -> GroupWrite {
        if self.settings.look_only { GroupWrite::Left } else { GroupWrite::Taken }
    }

    fn check_directory(&self) -> Result<PathBuf, Untrusted> {
        trust::check_directory(&self.directory, self.group())
    }

    /// `directory` by its real name, checked.
    fn open(&self, directory: &Path, wait: Duration) -> Result<Connection, ReadError> {
        let path = directory.join(&self.name);
        let exists = path.symlink_metadata().is_ok();
        let writable = file_system::is_writable(directory)
            && (!exists || file_system::is_writable_file(&path));
        let UserSettings { max_object_bytes, limit_bytes, look_only, .. } = self.settings;
        if exists && !writable {
            let mut options = ReadOptions::default();
            options.max_object_bytes = max_object_bytes;
            return Reader::open_with(&path, options).map(Connection::Read);
        }
        let mut options = UserOptions::default();
        options.max_object_bytes = max_object_bytes;
        options.limit_bytes = limit_bytes;
        options.busy = wait;
        options.look_only = look_only;
        UserKdb::open(&path, &options).map(Connection::Write)
    }

    /// The reason for a miss, after what is to be done about it.
    fn faulty(&self, file: Identity, error: ReadError) -> MissReason {
        if error.is_absent() {
            return MissReason::NoFile;
        }
        if is_damage(error.fault())
            && !self.settings.look_only
            && let Ok(directory) = self.check_directory()
            && let Ok(Some(kept_as)) = self.move_aside(&directory, file)
        {
            return MissReason::MovedAside { kept_as, source: error };
        }
        match error {
            error @ ReadError::Row { .. } => MissReason::Damaged(error),
            error => unreadable(error),
        }
    }

    /// Renames the damaged file; none where another thread or process did.
    fn move_aside(&self, directory: &Path, file: Identity) -> io::Result<Option<PathBuf>> {
        let held = KeyLock::acquire(directory, &format!("{}.aside", self.name), self.settings.busy);
        if held.is_none() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let path = directory.join(&self.name);
        if Identity::of_name(&path).ok() != Some(file) {
            return Ok(None);
        }
        aside::rename(&path).map(Some)
    }

    /// Keeps uses that could not be written down for the next store.
    fn note_later(&self, uses: Vec<(KernelKey, u64)>) {
        let mut used = lock(&self.used);
        for (key, seconds) in uses {
            let latest = used.entry(key).or_insert(seconds);
            *latest = seconds.max(*latest);
        }
    }

    fn note_use(&self, connection: Connection, key: &KernelKey) -> Connection {
        let Connection::Write(mut kdb) = connection else { return connection };
        if self.settings.look_only {
            return Connection::Write(kdb);
        }
        let mut used = lock(&self.used);
        used.insert(key.clone(), clock::now());
        if used.len() >= NOTED_TOGETHER {
            let together: Vec<(KernelKey, u64)> = used.drain().collect();
            drop(used);
            // Usage only decides who goes first.
            kdb.note_use(&together).ok();
        }
        Connection::Write(kdb)
    }
}

impl Drop for UserFile {
    fn drop(&mut self) {
        let used: Vec<(KernelKey, u64)> = lock(&self.used).drain().collect();
        if used.is_empty() {
            return;
        }
        let file = Identity::of_name(&self.path()).ok();
        if let Some(Connection::Write(mut kdb)) = file.and_then(|file| self.connections.take(file))
        {
            kdb.note_use(&used).ok();
        }
    }
}

impl BusySince {
    fn forbids_to_wait(&self, to: To) -> bool {
        let recently = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < NO_WAIT_AFTER_BUSY);
        recently(self.reading) || to == To::Store && recently(self.storing)
    }

    /// Who could store could read too.
    fn set(&mut self, to: To, since: Option<Instant>) {
        match to {
            To::Read => self.reading = since,
            To::Store if since.is_none() => *self = Self::default(),
            To::Store => self.storing = since,
        }
    }
}

impl StoreError {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            _ if self.is_busy() => "find the program that keeps the user's kdb locked",
            Self::Untrusted(error) => error.hint(),
            _ => "check that the disk has room and the directory is yours",
        }
    }

    fn is_busy(&self) -> bool {
        match self {
            Self::Open(error) => error.fault() == Fault::Busy,
            Self::Write(error) => error.fault() == Fault::Busy,
            _ => false,
        }
    }

    fn is_damage(&self) -> bool {
        match self {
            Self::Open(error) => is_damage(error.fault()),
            Self::Write(error) => is_damage(error.fault()),
            _ => false,
        }
    }

    fn into_read_error(self, path: &Path) -> ReadError {
        match self {
            Self::Open(error) => error,
            Self::Write(WriteError::Sqlite { path, source }) => ReadError::Sqlite { path, source },
            // Said in the words of reading, which it failed at.
            _ => ReadError::NotSqlite { path: path.to_owned() },
        }
    }
}

/// Whether the file as a whole is no kdb, whoever looks at it.
fn is_damage(fault: Fault) -> bool {
    matches!(fault, Fault::Corrupt | Fault::TooSmall | Fault::Schema)
}

fn unreadable(error: ReadError) -> MissReason {
    MissReason::Unreadable(Arc::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_once_and_after_a_wait_in_vain_nobody_does() {
        const BUSY: Duration = Duration::from_secs(1000);
        let settings =
            UserSettings { max_object_bytes: 1, limit_bytes: 1, busy: BUSY, look_only: false };
        let file = UserFile::new("/nonexistent".into(), "a.ukdb".to_owned(), settings);
        let wait = |to, patience: &Patience, busy| file.waiting(to, patience, |it| it, |_| busy);
        let call = |to, busy| wait(to, &Patience::new(BUSY), busy);
        let patience = Patience::new(BUSY);
        patience.spend(Duration::from_secs(999));
        let left = wait(To::Read, &patience, false);
        assert!(left <= Duration::from_secs(1), "{left:?} after another file was waited for");
        assert_eq!(call(To::Read, true), BUSY, "another call waits in full");
        assert_eq!(call(To::Read, true), Duration::ZERO);
        assert_eq!(call(To::Store, true), Duration::ZERO);
        assert_eq!(call(To::Read, false), Duration::ZERO, "it is free again");
        assert_eq!(call(To::Read, false), BUSY);
        // Who stores lets others read.
        assert_eq!(call(To::Store, true), BUSY);
        assert_eq!(call(To::Read, false), BUSY);
        assert_eq!(call(To::Store, true), Duration::ZERO);
        assert_eq!(call(To::Store, false), Duration::ZERO);
        assert_eq!(call(To::Store, false), BUSY);
    }
}
