//! Reads a user's kdb that another program has open in WAL mode, without the
//! memory that such programs share: from a private copy of the file and its
//! log.

use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gfxpack_model::KernelKey;
use gfxpack_sqlite::beside;

use super::connect;
use super::user_kdb::reader;
use crate::error::{Fault, ReadError};
use crate::header::Journal;
use crate::open::{self, sqlite_error};
use crate::read::Reader;

/// Largest size of file and log together, in bytes, that is copied.
const MAX_COPY_BYTES: u64 = 256 << 20;

/// How often to try to copy a file that changes meanwhile.
const ATTEMPTS: u32 = 5;

/// How many seconds before the copy the last change of file and log must be, so
/// that their times reveal every later change. Two changes within one tick of
/// the file system's clock leave the same time; the coarsest ticks take 2
/// seconds.
const REST_SECONDS: i64 = 3;

/// How long a copy that may lack the last change is used.
const UNSURE_FOR: Duration = Duration::from_secs(1);

/// A private copy of a user's kdb and its log.
///
/// A write by another program during the copy may be copied in part. So file
/// and log must not change meanwhile, judging by their times; SQLite checks the
/// log, and each kernel's MD5 is computed before it is returned. So every
/// returned kernel is intact, and at worst slightly out of date.
pub struct KdbSnapshot {
    reader: Reader,
    /// Of the file and of the log.
    stamps: [Stamp; 2],
    made: Instant,
    /// Whether any later change would change the times.
    rested: bool,
}

/// Identifies a file and its version.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn read(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::symlink_metadata(path)?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self {
            file: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl KdbSnapshot {
    /// Copies the file and its log, and opens the copy, which is removed from
    /// `temp_dir` before this returns. `now` is in seconds since the epoch. No
    /// other thread of this process may use the file meanwhile: closing it
    /// drops their locks.
    ///
    /// # Errors
    /// [`ReadError`] of the file (absent if it has no log) or of `temp_dir`, if they are too large
    /// or keep changing, and for the copy, as [`Reader::open`].
    pub fn take(path: &Path, temp_dir: &Path, now: u64) -> Result<Self, ReadError> {
        let io = |source| ReadError::io(path, source);
        let no_copy = |source| ReadError::io(temp_dir, source);
        for _ in 0..ATTEMPTS {
            let stamps = stamps(path).map_err(io)?;
            let size = stamps[0].size.saturating_add(stamps[1].size);
            if size > MAX_COPY_BYTES {
                return Err(Fault::TooLargeToCopy(size, MAX_COPY_BYTES).of(path));
            }
            let private = PrivateDir::create(temp_dir).map_err(no_copy)?;
            let copy = private.path().join("copy");
            for (from, to, stamp) in [
                (path.to_owned(), copy.clone(), stamps[0]),
                (log_of(path), log_of(&copy), stamps[1]),
            ] {
                copy_file(&from, &to, stamp.size).map_err(io)?;
            }
            if self::stamps(path).map_err(io)? != stamps {
                continue;
            }
            // Keeps both files open, which then need no names.
            let connected = connect::connect_to_copy(&copy);
            let (connection, budget) = connected.map_err(|source| sqlite_error(path, source))?;
            let reader = reader(path, connection, budget, Journal::Wal)?;
            let newest = stamps.iter().map(|stamp| stamp.changed.0).max().unwrap_or(0);
            let now = i64::try_from(now).unwrap_or(0);
            let rested = newest.saturating_add(REST_SECONDS) <= now;
            return Ok(Self { reader, stamps, made: Instant::now(), rested });
        }
        Err(Fault::KeepsChanging.of(path))
    }

    /// Whether the file and its log are unchanged since this copy was made.
    #[must_use]
    pub fn is_current(&self) -> bool {
        (self.rested || self.made.elapsed() < UNSURE_FOR)
            && stamps(self.reader.path()).is_ok_and(|now| now == self.stamps)
    }

    /// The code object of one key, decoded and checked against its hash; `None`
    /// if the copy does not have the key.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn get(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, ReadError> {
        self.reader.get(key)
    }

    /// Whether a log exists beside the file: another program may have it open
    /// in WAL mode.
    #[must_use]
    pub fn has_log(path: &Path) -> bool {
        open::has_log(path)
    }
}

fn stamps(path: &Path) -> io::Result<[Stamp; 2]> {
    Ok([Stamp::read(path)?, Stamp::read(&log_of(path))?])
}

fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

fn copy_file(from: &Path, to: &Path, size: u64) -> io::Result<()> {
    let no_link = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let from = OpenOptions::new().read(true).custom_flags(no_link.bits() as i32).open(from)?;
    let mut to = File::create_new(to)?;
    // Bytes appended since then are noticed by the size.
    io::copy(&mut from.take(size), &mut to).map(drop)
}

/// A directory that no other user can read, removed when its value is dropped.
struct PrivateDir(PathBuf);

impl PrivateDir {
    /// Creates a directory of mode 0700 in `parent`, with a name that can't be
    /// guessed.
    fn create(parent: &Path) -> io::Result<Self> {
        // Each `RandomState` has its own random keys from the operating system.
        let path = parent.join(format!("gfxpack-{:016x}", RandomState::new().hash_one(())));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_private_directory_has_mode_0700_and_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let dirs = [(); 2].map(|()| PrivateDir::create(parent.path()).unwrap());
        for dir in &dirs {
            assert_eq!(dir.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
            std::fs::write(dir.path().join("copy"), "").unwrap();
        }
        drop(dirs);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        assert!(PrivateDir::create(&parent.path().join("absent")).is_err());
    }
}
