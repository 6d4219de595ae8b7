//! A file that is being written: it is created beside its destination, locked
//! so that other writers do not remove it, and removed unless it is moved to
//! its destination.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, Error, OpenFlags};
use tempfile::NamedTempFile;

/// Suffix of files that are being written.
const TEMP_SUFFIX: &str = ".tmp";

/// Number of random letters and digits between prefix and suffix.
const RANDOM_CHARACTERS: usize = 6;

/// Errors of directories that can't be written to disk by themselves.
const UNSYNCABLE: [io::ErrorKind; 2] =
    [io::ErrorKind::InvalidInput, io::ErrorKind::PermissionDenied];

/// Whether the name is that of a temporary file of a writer of the same file.
fn is_temp(name: &[u8], prefix: &[u8]) -> bool {
    let random =
        name.strip_prefix(prefix).and_then(|name| name.strip_suffix(TEMP_SUFFIX.as_bytes()));
    random.is_some_and(|random| {
        random.len() == RANDOM_CHARACTERS && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// Removes what killed writers of the same file left: the user's own files that
/// nobody has locked. It is harmless if one can't be removed.
fn sweep(directory: &Path, prefix: &std::ffi::OsStr) {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let (name, prefix) = (name.as_encoded_bytes(), prefix.as_encoded_bytes());
        // Checked before opening: opening a pipe without a writer would block.
        if is_temp(name, prefix)
            && entry.metadata().is_ok_and(|of| of.is_file() && of.uid() == own)
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // Still locked, so that its writer does not take it for locked by itself.
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

/// The permissions of the file that will be replaced, if it exists.
fn rights_of(path: &Path) -> Option<u32> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(metadata.permissions().mode() & 0o777)
}

/// Why a file was not written: the action that failed (`create`, `store`), and the
/// operating system's error.
pub type NewFileError = (&'static str, io::Error);

/// A file that is being written beside its destination. It is removed unless it
/// is moved there.
pub struct NewFile {
    file: NamedTempFile,
    path: PathBuf,
    directory: PathBuf,
    syncing: Option<JoinHandle<io::Result<()>>>,
}

impl NewFile {
    /// Creates an empty file beside `path`.
    pub fn beside(path: &Path) -> Result<Self, NewFileError> {
        let io = |source| ("create", source);
        // Absolute, since SQLite interprets a relative `file:...` as a URI.
        let mut directory = std::path::absolute(path).map_err(io)?;
        let name = path.file_name().filter(|_| directory.pop()).ok_or_else(|| {
            io(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))
        })?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(TEMP_SUFFIX).rand_bytes(RANDOM_CHARACTERS);
        // A new file gets the usual permissions, reduced by the umask. A file
        // that replaces another gets no more than that one has.
        let rights = rights_of(path);
        builder.permissions(Permissions::from_mode(rights.map_or(0o666, |mode| mode | 0o600)));
        sweep(&directory, &prefix);
        loop {
            let file = builder.tempfile_in(&directory).map_err(io)?;
            match file.as_file().try_lock() {
                // Another writer is about to remove it, or did so before it was locked.
                Err(TryLockError::WouldBlock) => continue,
                Ok(()) if !file.path().exists() => continue,
                // If locks are not supported, nothing is removed either.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            return Ok(Self { file, path: path.to_owned(), directory, syncing: None });
        }
    }

    /// Opens a connection, begins a transaction, and fixes every setting that
    /// affects the file. No journal: a file that fails is discarded. A small
    /// cache: rows are only appended, so finished pages should be written
    /// early. Pages have SQLite's default size.
    pub fn connect(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // SQLite takes no locks: nobody else uses the file, and on NFS its
        // locks would conflict with the lock against removal.
        let connection =
            Connection::open_with_flags_and_vfs(self.file.path(), flags, c"unix-none")?;
        connection.execute_batch(
            "PRAGMA page_size = 4096;
             PRAGMA encoding = 'UTF-8';
             PRAGMA auto_vacuum = NONE;
             PRAGMA secure_delete = ON;
             PRAGMA journal_mode = OFF;
             PRAGMA synchronous = OFF;
             PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA cache_size = -2048;
             PRAGMA mmap_size = 0;
             BEGIN EXCLUSIVE;",
        )?;
        Ok(connection)
    }

    /// The file itself, to write text.
    pub fn as_file_mut(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Starts writing the bytes so far to disk in the background, unless an
    /// earlier write is still running. The kernel alone would begin late.
    ///
    /// # Errors
    /// An error of the earlier write: the system reports it only once, so it
    /// counts here.
    pub fn write_back(&mut self) -> Result<(), NewFileError> {
        if self.syncing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        self.wait_for_disk()?;
        let start = || {
            let file = self.file.as_file().try_clone()?;
            thread::Builder::new().spawn(move || file.sync_data())
        };
        self.syncing = Some(start().map_err(|source| ("store", source))?);
        Ok(())
    }

    fn wait_for_disk(&mut self) -> Result<(), NewFileError> {
        let synced = self.syncing.take().map_or(Ok(()), |thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        synced.map_err(|source| ("store", source))
    }

    /// Writes the file to disk, moves it to its destination, and returns its
    /// size. If it replaces another file it gets that file's permissions.
    ///
    /// # Errors
    /// If it can't be stored. The destination is then unchanged, unless only
    /// the file's name is not on disk yet.
    pub fn persist(mut self) -> Result<u64, NewFileError> {
        self.wait_for_disk()?;
        let Self { file, path, directory, .. } = self;
        let store = || {
            if let Some(mode) = rights_of(&path) {
                file.as_file().set_permissions(Permissions::from_mode(mode))?;
            }
            file.as_file().sync_all()?;
            file.as_file().metadata()
        };
        let bytes = store().map_err(|source| ("store", source))?.len();
        file.persist(&path).map_err(|error| ("put in place", error.error))?;
        // The name is on disk once its directory is. Some network file systems
        // do not support this, and a directory may be writable but not readable.
        match File::open(directory).and_then(|directory| directory.sync_all()) {
            Err(source) if !UNSYNCABLE.contains(&source.kind()) => {
                Err(("store the name of", source))
            }
            _ => Ok(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlites_locks_do_not_conflict_with_the_lock_against_removal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let file = NewFile::beside(&path).unwrap();
        let connection = file.connect().unwrap();
        connection.execute_batch("CREATE TABLE t (x)").unwrap();
        let other = Connection::open(file.file.path()).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE; ROLLBACK").unwrap();
        drop(other);
        connection.execute_batch("COMMIT").unwrap();
        connection.close().unwrap();
        file.persist().unwrap();
    }
}
