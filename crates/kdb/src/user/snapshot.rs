//! Reads a user's kdb that another program has open in WAL mode, without the
//! memory that such programs share: from a private copy of the file and its
//! log.

use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

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
}

/// A version of a file: its size, its device and inode, and the seconds and nanoseconds of its last
/// modification and change.
type Stamp = (u64, [u64; 2], [i64; 4]);

impl KdbSnapshot {
    /// Copies the file and its log, and opens the copy, which is removed from
    /// `temp_dir` before this returns. No other thread of this process may use
    /// the file meanwhile: closing it drops their locks.
    ///
    /// # Errors
    /// [`ReadError`] of the file (absent if it has no log) or of `temp_dir`, if they are too large
    /// or keep changing, and for the copy, as [`Reader::open`].
    pub fn take(path: &Path, temp_dir: &Path) -> Result<Self, ReadError> {
        let io = |source| ReadError::io(path, source);
        let no_copy = |source| ReadError::io(temp_dir, source);
        for _ in 0..ATTEMPTS {
            let stamps = stamps(path).map_err(io)?;
            let size = stamps[0].0.saturating_add(stamps[1].0);
            if size > MAX_COPY_BYTES {
                return Err(Fault::TooLargeToCopy(size, MAX_COPY_BYTES).of(path));
            }
            let private = PrivateDir::create(temp_dir).map_err(no_copy)?;
            let copy = private.0.join("copy");
            copy_file(path, &copy, stamps[0].0).map_err(io)?;
            copy_file(&log_of(path), &log_of(&copy), stamps[1].0).map_err(io)?;
            if self::stamps(path).map_err(io)? != stamps {
                continue;
            }
            // Keeps both files open, which then need no names.
            let connected = connect::connect_to_copy(&copy);
            let (connection, budget) = connected.map_err(|source| sqlite_error(path, source))?;
            let reader = reader(path, connection, budget, Journal::Wal)?;
            return Ok(Self { reader, stamps });
        }
        Err(Fault::KeepsChanging.of(path))
    }

    /// Whether the file and its log are unchanged since this copy was made, by their sizes and
    /// times.
    pub fn is_current(&self) -> bool {
        stamps(self.reader.path()).is_ok_and(|now| now == self.stamps)
    }

    /// The code object of one key, decoded and checked against its hash; `None`
    /// if the copy does not have the key.
    pub fn get(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, ReadError> {
        self.reader.get(key)
    }

    /// Whether a log exists beside the file: another program may have it open
    /// in WAL mode.
    pub fn has_log(path: &Path) -> bool {
        open::has_log(path)
    }
}

fn stamps(path: &Path) -> io::Result<[Stamp; 2]> {
    let stamp = |path: &Path| -> io::Result<Stamp> {
        let it = std::fs::symlink_metadata(path)?;
        if !it.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let times = [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()];
        Ok((it.size(), [it.dev(), it.ino()], times))
    };
    Ok([stamp(path)?, stamp(&log_of(path))?])
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
            assert_eq!(dir.0.metadata().unwrap().permissions().mode() & 0o777, 0o700);
            std::fs::write(dir.0.join("copy"), "").unwrap();
        }
        drop(dirs);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        assert!(PrivateDir::create(&parent.path().join("absent")).is_err());
    }
}
