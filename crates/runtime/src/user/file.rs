//! The user's kdb of one device: its path, its connections, and the times when
//! its kernels were used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use gfxpack_kdb::{KdbSnapshot, ReadError, Reader, UserKdb, UserOptions};
use gfxpack_model::KernelKey;
use gfxpack_model::digest::Hasher;

use super::waiting::BusyHistory;
use crate::connection_pool::Pool;
use crate::file_system::{self, FileIdentity};
use crate::key_lock::KeyLock;
use crate::mutex::lock;
use crate::sqlite_gate::{self, SqliteGate};
use crate::trust::{self, GroupWrite, Untrusted};

/// How many uses are written in one transaction.
const NOTED_TOGETHER: usize = 256;

/// Seconds since the epoch, for the times of last use. No output depends on it.
#[expect(clippy::disallowed_methods, reason = "the least recently used kernel goes first")]
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// One user's kdb, which may appear, change and disappear at any time.
pub(crate) struct UserFile {
    pub(super) directory: PathBuf,
    pub(super) name: String,
    /// `busy` is how long to wait for other processes that quarantine a damaged file.
    pub(super) options: UserOptions,
    /// Directory for private copies, which are removed at once.
    pub(super) temp_dir: PathBuf,
    pub(super) gate: &'static SqliteGate,
    pub(super) connections: Pool<Connection>,
    /// Used while another program has the file open in WAL mode.
    pub(super) copy: Mutex<Option<KdbSnapshot>>,
    /// Times of use that are not yet written to the file.
    pub(super) used: Mutex<HashMap<KernelKey, u64>>,
    pub(super) busy_history: BusyHistory,
}

pub(super) enum Connection {
    /// Can write, unless nothing may be changed.
    Write(UserKdb),
    /// The file or its directory can't be written to.
    Read(Reader),
}

impl UserFile {
    pub(crate) fn new(
        directory: PathBuf,
        name: String,
        options: UserOptions,
        temp_dir: PathBuf,
    ) -> Self {
        let gate = sqlite_gate::for_this_process();
        Self {
            directory,
            name,
            options,
            temp_dir,
            gate,
            connections: Pool::new(gate),
            copy: Mutex::default(),
            used: Mutex::default(),
            busy_history: BusyHistory::default(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The lock that lets only one process compile a key at a time; `None` if
    /// it was not free in time.
    pub(crate) fn lock_key(&self, key: &KernelKey, wait: Duration) -> Option<KeyLock> {
        let directory = trust::make_directory(&self.directory).ok()?;
        let name = Hasher::new("kernel")
            .field(self.name.as_bytes())
            .field(key.kernel_name.as_bytes())
            .field(key.kernel_args.as_bytes())
            .finish();
        KeyLock::acquire(&directory, &name.to_string(), wait)
    }

    /// An idle connection to exactly this file, which waits for others up to
    /// `wait`.
    pub(super) fn take(&self, file: FileIdentity, wait: Duration) -> Option<Connection> {
        let mut connection = self.connections.take(file)?;
        if let Connection::Write(kdb) = &mut connection {
            kdb.set_busy(wait);
        }
        Some(connection)
    }

    /// Keeps a connection for reuse. With `look_only` it is closed instead.
    pub(super) fn give(&self, file: FileIdentity, connection: Connection) {
        if !self.options.look_only {
            self.connections.give(file, connection);
        }
    }

    pub(super) fn group(&self) -> GroupWrite {
        if self.options.look_only { GroupWrite::Left } else { GroupWrite::Taken }
    }

    /// Returns the directory's real path, if it and the file can be trusted.
    pub(super) fn check(&self) -> Result<PathBuf, Untrusted> {
        let directory = trust::check_directory(&self.directory, self.group())?;
        trust::check_file(&directory.join(&self.name), self.group())?;
        Ok(directory)
    }

    /// Opens the file. `directory` is its checked real path.
    pub(super) fn open(&self, directory: &Path, wait: Duration) -> Result<Connection, ReadError> {
        let path = directory.join(&self.name);
        let exists = path.symlink_metadata().is_ok();
        let writable = file_system::is_writable(directory)
            && (!exists || file_system::is_writable_file(&path));
        if exists && !writable {
            return Reader::open(&path).map(Connection::Read);
        }
        let mut options = self.options.clone();
        options.busy = wait;
        UserKdb::open(&path, &options).map(Connection::Write)
    }

    /// Keeps uses that could not be written until the next store.
    pub(super) fn note_later(&self, uses: Vec<(KernelKey, u64)>) {
        let mut used = lock(&self.used);
        for (key, seconds) in uses {
            let latest = used.entry(key).or_insert(seconds);
            *latest = seconds.max(*latest);
        }
    }

    /// Records a use. Returns the connection unless it failed.
    pub(super) fn note_use(&self, connection: Connection, key: &KernelKey) -> Option<Connection> {
        let Connection::Write(mut kdb) = connection else { return Some(connection) };
        if !self.options.look_only {
            let mut used = lock(&self.used);
            used.insert(key.clone(), now());
            if used.len() >= NOTED_TOGETHER {
                let together: Vec<(KernelKey, u64)> = used.drain().collect();
                drop(used);
                // Lost uses only affect which kernels are deleted first.
                kdb.note_use(&together).ok()?;
            }
        }
        Some(Connection::Write(kdb))
    }
}

impl Drop for UserFile {
    fn drop(&mut self) {
        let Some(_inside) = self.gate.enter_shared() else { return };
        lock(&self.copy).take();
        let used: Vec<(KernelKey, u64)> = lock(&self.used).drain().collect();
        if used.is_empty() {
            return;
        }
        let file = FileIdentity::of_link(&self.path()).ok();
        if let Some(Connection::Write(mut kdb)) = file.and_then(|file| self.connections.take(file))
        {
            kdb.note_use(&used).ok();
        }
    }
}
