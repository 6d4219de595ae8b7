//! Finds out which files other processes are using.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

use crate::patterns::is_sqlite;

/// The files that other processes have open now, as device and inode: those of this
/// user, and readable ones of others, by the descriptors in /proc; empty if
/// processes are not visible there.
pub(crate) fn open_files() -> HashSet<(u64, u64)> {
    let own = std::process::id().to_string();
    let mut files = HashSet::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let number = name.to_str().is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        if !number || name.to_str() == Some(&own) {
            continue;
        }
        let descriptors = fs::read_dir(process.path().join("fd"));
        for descriptor in descriptors.into_iter().flatten().flatten() {
            // Follows the kernel's link to the file itself.
            if let Ok(metadata) = fs::metadata(descriptor.path())
                && metadata.is_file()
            {
                files.insert((metadata.dev(), metadata.ino()));
            }
        }
    }
    files
}

/// Ranges of SQLite's locks: those of the database itself, and those of the
/// shared memory beside a write-ahead log, of which each connection holds one.
///
/// Source: SQLite, `PENDING_BYTE` and `SHARED_SIZE` in os.h, `UNIX_SHM_BASE`
/// and `UNIX_SHM_DMS` in os_unix.c.
const DATABASE_LOCKS: (u64, u64) = (0x4000_0000, 512);
const MEMORY_LOCKS: (u64, u64) = (120, 9);

/// Whether another process holds a lock on the database. Locks are visible even
/// if the process is not, as in another container.
pub(crate) fn is_locked(path: &Path) -> bool {
    if !is_sqlite(path) {
        return false;
    }
    let mut memory = OsString::from(path);
    memory.push("-shm");
    has_lock(path, DATABASE_LOCKS) || has_lock(&PathBuf::from(memory), MEMORY_LOCKS)
}

fn has_lock(path: &Path, (start, length): (u64, u64)) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let query = Flock {
        start,
        length,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    // If the query fails, assumes a lock.
    fcntl_getlk(&file, &query).map_or(true, |holder| holder.is_some())
}
