//! The user's kdb of one device: found, trusted, read, written, and replaced
//! when it is damaged.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gfxpack_kdb::{Fault, ReadError, ReadOptions, Reader, UserKdb, UserOptions, WriteError};
use gfxpack_plan::KernelKey;
use gfxpack_plan::digest::Hasher;

use crate::file_system::{self, Identity};
use crate::key_lock::KeyLock;
use crate::miss::MissReason;
use crate::pool::Pool;
use crate::trust::{self, Untrusted};
use crate::{aside, clock, lock};

/// Uses that are noted in one transaction.
const NOTED_TOGETHER: usize = 256;

/// How a user's kdb is used.
#[derive(Debug, Clone)]
pub(crate) struct UserSettings {
    pub(crate) max_object_bytes: u64,
    pub(crate) limit_bytes: u64,
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
}

enum Connection {
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
        let used = Mutex::default();
        Self { directory, name, settings, connections: Pool::new(), used }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The code object of a key, held against its hash. A file that is no kdb
    /// is moved aside.
    pub(crate) fn get(&self, key: &KernelKey) -> Result<Vec<u8>, MissReason> {
        let path = self.path();
        let file = match Identity::of_name(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(MissReason::NoFile);
            }
            Err(source) => return Err(unreadable(ReadError::Io { path, source })),
        };
        let connection = match self.connections.take(file) {
            Some(connection) => connection,
            None => {
                let directory =
                    trust::check_directory(&self.directory).map_err(MissReason::Untrusted)?;
                trust::check_file(&directory.join(&self.name)).map_err(MissReason::Untrusted)?;
                self.open(&directory).map_err(|error| self.faulty(file, error))?
            }
        };
        let answer = match &connection {
            Connection::Write(kdb) => kdb.get(key),
            Connection::Read(reader) => reader.get(key),
        };
        match answer {
            Ok(Some(code_object)) => {
                let connection = self.note_use(connection, key);
                self.connections.give(file, connection);
                Ok(code_object)
            }
            Ok(None) => {
                self.connections.give(file, connection);
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
        mut moved_aside: impl FnMut(&MissReason),
    ) -> Result<(), StoreError> {
        let directory = trust::make_directory(&self.directory)?;
        let path = directory.join(&self.name);
        let mut again = true;
        loop {
            if path.symlink_metadata().is_ok() {
                trust::check_file(&path)?;
            }
            let before = Identity::of_name(&path).ok();
            let stored = self.store_once(&directory, &path, key, code_object);
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
    ) -> Result<(), StoreError> {
        let pooled = Identity::of_name(path).ok().and_then(|file| self.connections.take(file));
        let connection = match pooled {
            Some(connection) => connection,
            None => self.open(directory)?,
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
            self.connections.give(file, Connection::Write(kdb));
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

    /// `directory` by its real name, checked.
    fn open(&self, directory: &Path) -> Result<Connection, ReadError> {
        let path = directory.join(&self.name);
        let exists = path.symlink_metadata().is_ok();
        let writable = file_system::is_writable(directory)
            && (!exists || file_system::is_writable_file(&path));
        let UserSettings { max_object_bytes, limit_bytes, busy, look_only } = self.settings;
        if exists && !writable {
            let mut options = ReadOptions::default();
            options.max_object_bytes = max_object_bytes;
            return Reader::open_with(&path, options).map(Connection::Read);
        }
        let mut options = UserOptions::default();
        options.max_object_bytes = max_object_bytes;
        options.limit_bytes = limit_bytes;
        options.busy = busy;
        options.wal = file_system::network(directory).is_none();
        options.create = !look_only;
        UserKdb::open(&path, &options).map(Connection::Write)
    }

    /// The reason for a miss, after what is to be done about it.
    fn faulty(&self, file: Identity, error: ReadError) -> MissReason {
        if error.is_absent() {
            return MissReason::NoFile;
        }
        if is_damage(error.fault())
            && !self.settings.look_only
            && let Ok(directory) = trust::check_directory(&self.directory)
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

impl StoreError {
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
