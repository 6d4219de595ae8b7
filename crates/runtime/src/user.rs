//! The user's kdb of one device: found, trusted, read and written.

mod busy;
mod damage;
mod live;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use busy::{BusySince, To};
use damage::{SecondLook, is_damage};
use gfxpack_kdb::{
    Fault, KdbSnapshot, ReadError, ReadOptions, Reader, UserKdb, UserOptions, WriteError,
};
use gfxpack_model::KernelKey;
use gfxpack_model::digest::Hasher;

use crate::file_system::{self, Identity};
use crate::gate::{self, Gate};
use crate::key_lock::KeyLock;
use crate::miss::MissReason;
use crate::patience::Patience;
use crate::pool::Pool;
use crate::trust::{self, GroupWrite, Untrusted};
use crate::{clock, lock};

/// Uses that are noted in one transaction.
const NOTED_TOGETHER: usize = 256;

/// Between two attempts to store into a file that another program has open in
/// WAL mode. MIOpen has it open for milliseconds.
const LIVE_PAUSE: Duration = Duration::from_millis(5);

/// How a user's kdb is used.
#[derive(Debug, Clone)]
pub(crate) struct UserSettings {
    pub(crate) max_object_bytes: u64,
    pub(crate) limit_bytes: u64,
    /// Waited for others who move a damaged file aside.
    pub(crate) busy: Duration,
    /// Nothing is made, changed or moved.
    pub(crate) look_only: bool,
    /// Where private copies are, for a moment.
    pub(crate) temp_dir: PathBuf,
}

/// One user's kdb, which may come, change and go.
pub(crate) struct UserFile {
    directory: PathBuf,
    name: String,
    settings: UserSettings,
    gate: &'static Gate,
    connections: Pool<Connection>,
    /// Read as long as another program has the file open in WAL mode.
    copy: Mutex<Option<KdbSnapshot>>,
    /// When kernels were used since that was last written down.
    used: Mutex<HashMap<KernelKey, u64>>,
    busy_since: Mutex<BusySince>,
}

enum Connection {
    /// Writes, unless nothing is to be changed.
    Write(UserKdb),
    /// The file or its directory can't be written to.
    Read(Reader),
}

/// Why a file gave no answer.
enum Trouble {
    Untrusted(Untrusted),
    Read(ReadError),
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
    #[error("failed to write `{}`: it can only be read", .0.display())]
    ReadOnly(PathBuf),
}

impl UserFile {
    pub(crate) fn new(directory: PathBuf, name: String, settings: UserSettings) -> Self {
        let gate = gate::of_process();
        Self {
            directory,
            name,
            settings,
            gate,
            connections: Pool::new(gate),
            copy: Mutex::default(),
            used: Mutex::default(),
            busy_since: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The code object of a key, held against its hash. A file that is no kdb,
    /// whoever looks at it, is moved aside.
    pub(crate) fn get(&self, key: &KernelKey, patience: &Patience) -> Result<Vec<u8>, MissReason> {
        let get = |wait| self.get_within(key, wait);
        self.waiting(
            To::Read,
            patience,
            get,
            |answer| matches!(answer, Err(reason) if reason.is_busy()),
        )
    }

    fn get_within(&self, key: &KernelKey, wait: Duration) -> Result<Vec<u8>, MissReason> {
        let path = self.path();
        let file = match Identity::of_name(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(MissReason::NoFile);
            }
            Err(source) => return Err(missed(ReadError::Io { path, source })),
        };
        if let Some(answer) = self.ask_copy(key) {
            return answer.map_err(missed_by)?.ok_or(MissReason::NoKernel);
        }
        let mut answer = self.ask(file, key, wait);
        if matches!(&answer, Err(Trouble::Read(error)) if is_live(error, &path)) {
            match self.ask_new_copy(key) {
                // The other program has closed it just now.
                Err(Trouble::Read(_)) if !KdbSnapshot::has_log(&path) => {
                    answer = self.ask(file, key, wait);
                }
                // What is wrong with a copy says nothing of the file.
                answer => return answer.map_err(missed_by)?.ok_or(MissReason::NoKernel),
            }
        }
        match answer {
            Err(Trouble::Read(error)) => Err(self.faulty(file, error, key)),
            answer => answer.map_err(missed_by)?.ok_or(MissReason::NoKernel),
        }
    }

    /// What the file itself answers.
    fn ask(
        &self,
        file: Identity,
        key: &KernelKey,
        wait: Duration,
    ) -> Result<Option<Vec<u8>>, Trouble> {
        let _inside = self.gate.enter().ok_or_else(|| gate::forked(self.path()))?;
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
            let stored = self.store_when_closed(&directory, key, code_object, wait);
            let Err(error) = stored else { return Ok(()) };
            let file = Identity::of_name(&path).ok();
            let replaced = before.is_some() && before != file;
            if !again || !(replaced || error.is_damage()) {
                return Err(error);
            }
            again = false;
            let Some(file) = file.filter(|_| !replaced) else { continue };
            let store = |mut kdb: UserKdb| {
                kdb.store(key, code_object, 0, &[]).map(drop).map_err(|error| error.fault())
            };
            match self.second_look(&directory, file, store) {
                Ok(SecondLook::MovedTo(kept_as)) => {
                    let source = error.into_read_error(&path);
                    moved_aside(&MissReason::MovedAside { kept_as, source });
                }
                Ok(SecondLook::Gone) => {}
                Ok(SecondLook::Whole) => return Err(error.passing(&path)),
                Err(_) => return Err(error),
            }
        }
    }

    /// Stores as soon as nobody has the file open in WAL mode.
    fn store_when_closed(
        &self,
        directory: &Path,
        key: &KernelKey,
        code_object: &[u8],
        wait: Duration,
    ) -> Result<(), StoreError> {
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
    ) -> Result<(), StoreError> {
        let Some(_inside) = self.gate.enter() else {
            return Err(StoreError::Open(gate::forked(self.path())));
        };
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

    /// The directory by its real name, if it and the file can be trusted.
    fn check(&self) -> Result<PathBuf, Untrusted> {
        let directory = trust::check_directory(&self.directory, self.group())?;
        trust::check_file(&directory.join(&self.name), self.group())?;
        Ok(directory)
    }

    /// `directory` by its real name, checked.
    fn open(&self, directory: &Path, wait: Duration) -> Result<Connection, ReadError> {
        let path = directory.join(&self.name);
        let exists = path.symlink_metadata().is_ok();
        let writable = file_system::is_writable(directory)
            && (!exists || file_system::is_writable_file(&path));
        if exists && !writable {
            let mut options = ReadOptions::default();
            options.max_object_bytes = self.settings.max_object_bytes;
            return Reader::open_with(&path, options).map(Connection::Read);
        }
        UserKdb::open(&path, &self.options(wait)).map(Connection::Write)
    }

    fn options(&self, wait: Duration) -> UserOptions {
        let mut options = UserOptions::default();
        options.max_object_bytes = self.settings.max_object_bytes;
        options.limit_bytes = self.settings.limit_bytes;
        options.busy = wait;
        options.look_only = self.settings.look_only;
        options
    }

    /// Keeps uses that could not be written down for the next store.
    fn note_later(&self, uses: Vec<(KernelKey, u64)>) {
        let mut used = lock(&self.used);
        for (key, seconds) in uses {
            let latest = used.entry(key).or_insert(seconds);
            *latest = seconds.max(*latest);
        }
    }

    /// Gives the connection back, unless it failed.
    fn note_use(&self, connection: Connection, key: &KernelKey) -> Option<Connection> {
        let Connection::Write(mut kdb) = connection else { return Some(connection) };
        if !self.settings.look_only {
            let mut used = lock(&self.used);
            used.insert(key.clone(), clock::now());
            if used.len() >= NOTED_TOGETHER {
                let together: Vec<(KernelKey, u64)> = used.drain().collect();
                drop(used);
                // Usage only decides who goes first.
                kdb.note_use(&together).ok()?;
            }
        }
        Some(Connection::Write(kdb))
    }
}

impl Drop for UserFile {
    fn drop(&mut self) {
        let Some(_inside) = self.gate.enter() else { return };
        lock(&self.copy).take();
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

impl From<Untrusted> for Trouble {
    fn from(error: Untrusted) -> Self {
        Self::Untrusted(error)
    }
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
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

    /// What did not fail again.
    fn passing(self, path: &Path) -> Self {
        let source = Box::new(self.into_read_error(path));
        Self::Open(ReadError::Transient { path: path.to_owned(), source })
    }
}

/// Whether what failed can be had from a private copy.
fn is_live(error: &ReadError, path: &Path) -> bool {
    matches!(error.fault(), Fault::Busy | Fault::Journal) && KdbSnapshot::has_log(path)
}

fn missed_by(trouble: Trouble) -> MissReason {
    match trouble {
        Trouble::Untrusted(error) => MissReason::Untrusted(error),
        Trouble::Read(error) => missed(error),
    }
}

/// The reason for a miss.
fn missed(error: ReadError) -> MissReason {
    match error {
        error if error.is_absent() => MissReason::NoFile,
        error @ ReadError::Row { .. } => MissReason::Damaged(error),
        error => MissReason::Unreadable(Arc::new(error)),
    }
}
