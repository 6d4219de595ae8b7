//! Building a kdb: every row in canonical order, into a fresh file, whole or
//! not at all.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_plan::KernelKey;
use rusqlite::{Connection, OpenFlags};
use tempfile::NamedTempFile;

use crate::codec::{self, Encoded};
use crate::error::WriteError;
use crate::pipeline;
use crate::schema::{
    CREATE_INDEX, CREATE_TABLE, INSERT, MAX_KEY_BYTES, MAX_OBJECT_BYTES, PAGE_SIZE,
};

/// How the names of files that are being written end.
const TEMP_SUFFIX: &str = ".tmp";

/// How code objects are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Blob {
    /// bzip2 where that is smaller, as MIOpen stores them.
    #[default]
    Auto,
    /// Raw: the file is larger, and MIOpen reads it about 16 times faster.
    Raw,
    /// bzip2 even where that is larger.
    Bz2,
}

/// How far the writing or verifying of a file has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows done.
    pub rows: u64,
    /// Rows in all.
    pub total: u64,
}

/// How a kdb is written.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct WriteOptions<'a> {
    /// How code objects are stored.
    pub blob: Blob,
    /// Bytes of code objects in memory at a time. Never shows in the file.
    pub window_bytes: u64,
    /// Called on the calling thread after every row.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Default for WriteOptions<'_> {
    fn default() -> Self {
        Self { blob: Blob::Auto, window_bytes: 64 << 20, progress: None }
    }
}

/// One row to write.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// What MIOpen will ask for.
    pub key: &'a KernelKey,
    /// Bytes of the code object, as far as known: it bounds what is in memory
    /// at a time, and nothing else depends on it.
    pub size: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Written {
    /// Kernels.
    pub rows: u64,
    /// Those of them that are stored raw.
    pub raw_rows: u64,
    /// Bytes of all code objects.
    pub object_bytes: u64,
    /// Bytes of all blobs as stored.
    pub stored_bytes: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
}

/// Writes a kdb of `rows`, which must be in strictly ascending order of their
/// keys, as [`KernelKey`] orders them. `code_object` delivers each by its
/// index in `rows`, from several threads, in about that order.
///
/// Equal rows and code objects give equal bytes, whatever the number of
/// threads or the window. The file appears under `path` only when it is whole
/// and on disk; an older one is replaced. Work runs in the current rayon pool.
///
/// # Errors
/// [`WriteError`]; of several faulty code objects, the first in row order.
/// The destination is then as it was, with nothing left beside it.
pub fn write<E>(
    path: &Path,
    rows: &[Row<'_>],
    options: &WriteOptions<'_>,
    code_object: impl Fn(usize) -> Result<Vec<u8>, E> + Sync,
) -> Result<Written, WriteError>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    check(rows)?;
    let WriteOptions { blob: form, window_bytes, progress } = *options;
    let temp = Temp::beside(path)?;
    let connection = temp.connect()?;
    let mut written = Written::default();
    {
        let sqlite = |source| temp.sqlite(source);
        connection.execute_batch(CREATE_TABLE).map_err(sqlite)?;
        // Before the rows: they come in the index's own order, so that it only
        // grows at its end. Made afterwards it would be sorted in temporary
        // files.
        connection.execute_batch(CREATE_INDEX).map_err(sqlite)?;
        let mut insert = connection.prepare(INSERT).map_err(sqlite)?;
        let mut indices = 0..rows.len();
        pipeline::in_order(
            window_bytes,
            // Both the bytes and their encoded form are held for a while.
            || Ok(indices.next().map(|index| (index, rows[index].size.saturating_mul(2)))),
            |index| object(rows[index].key, code_object(index), form),
            |encoded: Result<Encoded, WriteError>| {
                let Encoded { blob, hash, uncompressed_size, object_bytes } = encoded?;
                let key = rows[written.rows as usize].key;
                written.rows += 1;
                written.raw_rows += u64::from(uncompressed_size == 0);
                written.object_bytes += object_bytes;
                written.stored_bytes += blob.len() as u64;
                let size = uncompressed_size as i64;
                let id = written.rows as i64;
                insert
                    .execute((id, &key.kernel_name, &key.kernel_args, &blob, &hash, size))
                    .map_err(sqlite)?;
                if let Some(progress) = progress {
                    progress(Progress { rows: written.rows, total: rows.len() as u64 });
                }
                Ok::<(), WriteError>(())
            },
        )?;
        connection.execute_batch("COMMIT").map_err(sqlite)?;
    }
    connection.close().map_err(|(_, source)| temp.sqlite(source))?;
    written.file_bytes = temp.persist()?;
    Ok(written)
}

fn check(rows: &[Row<'_>]) -> Result<(), WriteError> {
    let mut previous: Option<&KernelKey> = None;
    for Row { key, .. } in rows.iter().copied() {
        key.check_text()?;
        let size = key.kernel_name.len() + key.kernel_args.len();
        if size > MAX_KEY_BYTES {
            let name = key.kernel_name.chars().take(100).collect();
            return Err(WriteError::KeyTooLong { name, size });
        }
        match previous.map(|previous| (previous, previous.cmp(key))) {
            None | Some((_, std::cmp::Ordering::Less)) => {}
            Some((_, std::cmp::Ordering::Equal)) => {
                return Err(WriteError::Duplicate(Box::new(key.clone())));
            }
            Some((previous, std::cmp::Ordering::Greater)) => {
                return Err(WriteError::Order {
                    key: Box::new(key.clone()),
                    previous: Box::new(previous.clone()),
                });
            }
        }
        previous = Some(key);
    }
    Ok(())
}

fn object<E>(key: &KernelKey, bytes: Result<Vec<u8>, E>, blob: Blob) -> Result<Encoded, WriteError>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let key = || Box::new(key.clone());
    let bytes = bytes.map_err(|source| WriteError::Object { key: key(), source: source.into() })?;
    let size = bytes.len() as u64;
    if !(1..=MAX_OBJECT_BYTES).contains(&size) {
        return Err(WriteError::ObjectSize { key: key(), size });
    }
    Ok(codec::encode(bytes, blob))
}

/// Removes what killed writers of the same kdb left: files that nobody holds
/// the lock of. One that can't be removed does no harm.
fn sweep(directory: &Path, prefix: &std::ffi::OsStr) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let (name, prefix) = (name.as_encoded_bytes(), prefix.as_encoded_bytes());
        if name.starts_with(prefix)
            && name.ends_with(TEMP_SUFFIX.as_bytes())
            && std::fs::File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
        {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

/// The file while it is written: beside its destination, removed unless it
/// gets there.
struct Temp<'a> {
    file: NamedTempFile,
    path: &'a Path,
    directory: PathBuf,
}

impl<'a> Temp<'a> {
    fn beside(path: &'a Path) -> Result<Self, WriteError> {
        let io = |source| WriteError::Io { action: "create", path: path.to_owned(), source };
        // Absolute, since SQLite takes a relative `file:...` for a URI.
        let mut directory = std::path::absolute(path).map_err(io)?;
        let name = path.file_name().filter(|_| directory.pop()).ok_or_else(|| {
            io(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))
        })?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(TEMP_SUFFIX);
        #[cfg(unix)]
        {
            // What any new file has; the umask takes from it.
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        sweep(&directory, &prefix);
        loop {
            let file = builder.tempfile_in(&directory).map_err(io)?;
            // Where locks are not to be had, neither is a sweep.
            let locked = file.as_file().try_lock().is_ok();
            // Another writer's sweep may have come between the two steps.
            if !locked || file.path().exists() {
                return Ok(Self { file, path, directory });
            }
        }
    }

    /// A connection with a transaction open and every setting that shows in
    /// the file fixed. No journal: a file that fails is thrown away.
    fn connect(&self) -> Result<Connection, WriteError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let connection = Connection::open_with_flags(self.file.path(), flags)?;
            connection.execute_batch(&format!(
                "PRAGMA page_size = {PAGE_SIZE};
                 PRAGMA encoding = 'UTF-8';
                 PRAGMA auto_vacuum = NONE;
                 PRAGMA secure_delete = ON;
                 PRAGMA journal_mode = OFF;
                 PRAGMA synchronous = OFF;
                 PRAGMA locking_mode = EXCLUSIVE;
                 PRAGMA cache_size = -16384;
                 PRAGMA mmap_size = 0;
                 BEGIN EXCLUSIVE;"
            ))?;
            Ok(connection)
        };
        open().map_err(|source| self.sqlite(source))
    }

    /// Puts the file on disk and in its place, and says how large it is.
    fn persist(self) -> Result<u64, WriteError> {
        let Self { file, path, directory } = self;
        let io = |action| move |source| WriteError::Io { action, path: path.to_owned(), source };
        file.as_file().sync_all().map_err(io("store"))?;
        let bytes = file.as_file().metadata().map_err(io("store"))?.len();
        file.persist(path).map_err(|error| io("put in place")(error.error))?;
        // The name is on disk once its directory is. Some network file systems
        // can't be asked for that.
        match std::fs::File::open(directory).and_then(|directory| directory.sync_all()) {
            Err(source) if source.kind() != io::ErrorKind::InvalidInput => {
                Err(io("store the name of")(source))
            }
            _ => Ok(bytes),
        }
    }

    fn sqlite(&self, source: rusqlite::Error) -> WriteError {
        WriteError::Sqlite { path: self.path.to_owned(), source }
    }
}
