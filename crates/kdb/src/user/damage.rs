//! Confirms that a user's kdb is damaged: reads its bytes again and repeats the
//! operation that failed.
//!
//! SQLite reports a failed read as damage: `unixRead` makes
//! `SQLITE_IOERR_CORRUPTFS` of EIO, and `sqlite3VdbeExec` makes
//! `SQLITE_CORRUPT` of that. So the file is read once more, without SQLite,
//! into memory, where no read can fail. The failed operation is then repeated
//! there.
//!
//! Source: SQLite 3.54.1, os_unix.c and vdbe.c.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, fcntl_lock};

use super::connect;
use super::user_kdb::{UserKdb, UserOptions};
use crate::error::{Fault, ReadError};
use crate::header::{HEADER_BYTES, Header, Journal, page_count};
use crate::open::{self, sqlite_error};
use crate::schema::MIN_FILE_BYTES;

/// Largest file, in bytes, that is read into memory. Of a larger one only the
/// header is checked.
const MAX_BYTES: u64 = 1 << 30;

/// Position of the write and read versions in the header: 2 for a write-ahead
/// log, 1 for a rollback journal.
const VERSIONS: std::ops::Range<usize> = 18..20;

/// A user's kdb whose bytes are damaged. It stays locked against all others
/// until this is dropped.
#[derive(Debug)]
pub struct DamagedKdb {
    _locked: File,
}

impl DamagedKdb {
    /// Checks a file that seemed damaged; `None` if it is not. `fails` is
    /// called with the file's content, opened in memory. It repeats the failed
    /// operation, and returns whether it failed again. No other thread of this
    /// process may use the file meanwhile: closing it drops their locks.
    ///
    /// # Errors
    /// [`ReadError`] if the file can't be read, written, or locked (`WouldBlock`), is too large, or
    /// part of it is in a journal or log.
    /// It is then not known whether the file is damaged.
    pub fn confirm(
        path: &Path,
        options: &UserOptions,
        fails: impl FnOnce(Result<UserKdb, ReadError>) -> bool,
    ) -> Result<Option<Self>, ReadError> {
        let io = |source| ReadError::io(path, source);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened =
            OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path);
        let file = opened.map_err(io)?;
        // All of SQLite's locks are on bytes of the file itself.
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| io(error.into()))?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(Fault::NotAFile.of(path));
        }
        let is_damaged = match metadata.size() {
            0 => false,
            1..MIN_FILE_BYTES => true,
            size => !is_whole(&file, path, size, options, fails)?,
        };
        Ok(is_damaged.then_some(Self { _locked: file }))
    }
}

fn is_whole(
    file: &File,
    path: &Path,
    size: u64,
    options: &UserOptions,
    fails: impl FnOnce(Result<UserKdb, ReadError>) -> bool,
) -> Result<bool, ReadError> {
    let io = |source| ReadError::io(path, source);
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).map_err(io)?;
    // Before parsing the header: the valid one may be in the journal.
    open::check_journal(path)?;
    let Some(Header { page_size, .. }) = Header::parse(&header) else { return Ok(false) };
    if open::has_log(path) {
        return Err(Fault::JournalMode(Journal::Wal.name()).of(path));
    }
    if size > MAX_BYTES {
        let declared = page_count(&header).map(|pages| u64::from(pages) * u64::from(page_size));
        if declared.is_some_and(|declared| declared > size) {
            return Ok(false);
        }
        return Err(Fault::TooLargeToCopy(size, MAX_BYTES).of(path));
    }
    // Marks the file as one with a rollback journal: in memory there can be no
    // log.
    for version in &mut header[VERSIONS] {
        *version = if *version == 2 { 1 } else { *version };
    }
    let mut rest = RestOfFile { file, at: HEADER_BYTES as u64, failed: None };
    let bytes = header.as_slice().chain(&mut rest);
    let length = usize::try_from(size).expect("no more than is read into memory");
    let connected = connect::connect_to_bytes(bytes, length);
    if let Some(error) = rest.failed {
        return Err(io(error));
    }
    let opened = connected
        .map_err(|source| sqlite_error(path, source))
        .and_then(|(connection, budget)| UserKdb::over(path, connection, budget, options));
    Ok(!fails(opened))
}

/// The part of a file after the header. Keeps an error, which SQLite would
/// replace by its own code.
struct RestOfFile<'a> {
    file: &'a File,
    at: u64,
    failed: Option<io::Error>,
}

impl Read for RestOfFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file.read_at(buffer, self.at) {
            Ok(0) if !buffer.is_empty() => self.failed = Some(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.at += count as u64;
                return Ok(count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => self.failed = Some(error),
        }
        Err(io::ErrorKind::Other.into())
    }
}
