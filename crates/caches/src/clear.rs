//! Removes cache entries, except those that must be kept.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

use crate::cache::CacheDirectory;
use crate::entry::CacheEntry;
use crate::patterns::is_sqlite;
use crate::user_environment::UserEnvironment;

/// Permission bit: in a directory of many users, each may remove only their own
/// entries.
const STICKY: u32 = 0o1000;
/// Permission bit: everybody may write.
const OTHERS_WRITE: u32 = 0o002;
/// Suffixes of results of tuning: MIOpen's, Triton's, Inductor's.
const RESULTS: [&str; 5] = [".udb.txt", ".ufdb.txt", ".udb", ".autotune.json", ".best_config"];
/// The administrator.
const ROOT: u32 = 0;

/// What to remove, and on behalf of which user.
#[derive(Debug, Clone)]
pub struct CacheCleaner {
    /// Only entries that have not been changed for this long.
    pub older_than: Option<Duration>,
    /// Whether to remove results of tuning too.
    pub tuning: bool,
    now: SystemTime,
    user: u32,
    homes: Vec<PathBuf>,
    open: HashSet<(u64, u64)>,
}

/// Why an entry is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepReason {
    /// The reason in machine-readable output: `live`.
    pub name: &'static str,
    /// The reason as text, with its subject.
    pub detail: String,
}

impl KeepReason {
    pub(crate) fn new(name: &'static str, detail: &str) -> Self {
        Self { name, detail: detail.to_owned() }
    }

    fn of(name: &'static str, path: &Path, detail: &str) -> Self {
        Self { name, detail: format!("`{}` {detail}", path.display()) }
    }

    fn unreadable(path: &Path) -> Self {
        Self::of("unreadable", path, "can't be looked at")
    }

    fn foreign(path: &Path) -> Self {
        Self::of("foreign", path, "belongs to another user, or to everybody")
    }

    fn unsafe_place(path: &Path) -> Self {
        Self::of("unsafe", path, "is the root, the home directory, or above it")
    }

    fn link(path: &Path) -> Self {
        Self::of("link", path, "is a symbolic link")
    }
}

impl CacheCleaner {
    /// Clearing by this process's user. Reads which files are open now.
    pub fn new(environment: &UserEnvironment, now: SystemTime) -> Self {
        Self {
            older_than: None,
            tuning: false,
            now,
            user: rustix::process::geteuid().as_raw(),
            homes: environment.homes().filter_map(|home| fs::canonicalize(home).ok()).collect(),
            open: open_files(),
        }
    }

    /// Why the entry must be kept; `None` if it may be removed.
    pub fn reason_to_keep(
        &self,
        directory: &CacheDirectory,
        entry: &CacheEntry,
    ) -> Option<KeepReason> {
        if entry.tuning && !self.tuning {
            let detail = "it is a result of tuning: --tuning removes it too";
            return Some(KeepReason::new("tuning", detail));
        }
        if let Some(age) = self.older_than {
            let changed = entry.changed.and_then(|changed| self.now.duration_since(changed).ok());
            if changed.is_none_or(|changed| changed < age) {
                return Some(KeepReason::new("young", "it was changed lately"));
            }
        }
        self.directory(directory)
            .or_else(|| self.contents(entry))
            .or_else(|| self.tuning_in(entry))
            .or_else(|| self.use_of(entry))
    }

    /// Removes the entry with its companion files, unless it must be kept, which
    /// is returned; this is decided by its present state, not by that at the
    /// scan. An entry that no longer exists counts as removed.
    ///
    /// # Errors
    /// The operating system's, with the path. The entry may then be partly
    /// removed, as after an interrupted clean-up by its own tool.
    pub fn remove(
        &self,
        directory: &CacheDirectory,
        entry: &CacheEntry,
    ) -> Result<Option<KeepReason>, (PathBuf, io::Error)> {
        let entry = &match directory.rescan(entry) {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                let detail = "is something else than what was found";
                return Ok(Some(KeepReason::of("replaced", &entry.path, detail)));
            }
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err((entry.path.clone(), source)),
        };
        if let Some(why) = self.reason_to_keep(directory, entry) {
            return Ok(Some(why));
        }
        // Companions first: a database without its log is intact or older, but
        // a log without its database would be applied to the next one. The
        // journal comes last: without it a database may be damaged, and SQLite
        // removes a journal that has no database.
        let is_journal =
            |path: &&PathBuf| path.as_os_str().as_encoded_bytes().ends_with(b"-journal");
        let (journals, others): (Vec<&PathBuf>, Vec<_>) =
            entry.companions.iter().partition(is_journal);
        for path in others.into_iter().chain([&entry.path]).chain(journals) {
            let removed =
                if entry.is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            match removed {
                // A part of it may not have been found.
                Err(source) if source.kind() != io::ErrorKind::NotFound || !is_gone(path) => {
                    return Err((path.clone(), source));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The problem of the entry's directory, if any.
    fn directory(&self, directory: &CacheDirectory) -> Option<KeepReason> {
        let dir = &directory.dir;
        let Ok(metadata) = fs::symlink_metadata(dir) else {
            return Some(KeepReason::unreadable(dir));
        };
        if metadata.is_symlink() {
            return Some(KeepReason::link(dir));
        }
        let Ok(real) = fs::canonicalize(dir) else {
            return Some(KeepReason::unreadable(dir));
        };
        if self.is_unsafe(&real) {
            return Some(KeepReason::unsafe_place(dir));
        }
        if let Some(why) = self.parents(&real) {
            return Some(why);
        }
        // The shared directory for temporary files belongs to nobody.
        if directory.place.shared && metadata.mode() & STICKY != 0 && metadata.uid() == ROOT {
            return None;
        }
        if metadata.uid() != self.user {
            return Some(KeepReason::foreign(dir));
        }
        None
    }

    /// Whether somebody could replace the directory while it is cleared.
    fn parents(&self, real: &Path) -> Option<KeepReason> {
        // In a container the administrator may have another number.
        let system = fs::symlink_metadata("/").map_or(ROOT, |root| root.uid());
        for parent in real.ancestors().skip(1) {
            let Ok(metadata) = fs::symlink_metadata(parent) else {
                return Some(KeepReason::unreadable(parent));
            };
            let open = metadata.mode() & (OTHERS_WRITE | STICKY) == OTHERS_WRITE;
            if open || ![self.user, ROOT, system].contains(&metadata.uid()) {
                return Some(KeepReason::foreign(parent));
            }
        }
        None
    }

    fn is_unsafe(&self, real: &Path) -> bool {
        real.parent().is_none() || self.homes.iter().any(|home| home.starts_with(real))
    }

    /// The problem of any part of the entry.
    fn contents(&self, entry: &CacheEntry) -> Option<KeepReason> {
        if entry.is_link {
            return Some(KeepReason::link(&entry.path));
        }
        let Ok(real) = fs::canonicalize(&entry.path) else {
            return Some(KeepReason::unreadable(&entry.path));
        };
        if self.is_unsafe(&real) {
            return Some(KeepReason::unsafe_place(&entry.path));
        }
        let Ok(device) = fs::symlink_metadata(&entry.path).map(|metadata| metadata.dev()) else {
            return Some(KeepReason::unreadable(&entry.path));
        };
        for path in entry.walk() {
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return Some(KeepReason::unreadable(&path)),
                Ok(metadata) if metadata.uid() != self.user => {
                    return Some(KeepReason::foreign(&path));
                }
                Ok(metadata) if metadata.dev() != device => {
                    return Some(KeepReason::of("mount", &path, "is on another file system"));
                }
                // A directory that can't be listed can't be checked.
                Ok(metadata) if metadata.is_dir() && fs::read_dir(&path).is_err() => {
                    return Some(KeepReason::unreadable(&path));
                }
                Ok(_) => {}
            }
        }
        None
    }

    /// Results of tuning among compiled files, as in Inductor's cache.
    fn tuning_in(&self, entry: &CacheEntry) -> Option<KeepReason> {
        if self.tuning {
            return None;
        }
        let is_result = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            RESULTS.iter().any(|end| name.ends_with(end.as_bytes()))
        };
        let path = entry.walk().find(is_result)?;
        let detail = "is a result of tuning: --tuning removes it too";
        Some(KeepReason::of("tuning-within", &path, detail))
    }

    /// Whether another process is using any part of it.
    fn use_of(&self, entry: &CacheEntry) -> Option<KeepReason> {
        let is_open = |path: &PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|of| self.open.contains(&(of.dev(), of.ino())))
        };
        let used = |path: &PathBuf| is_open(path) || is_locked(path);
        entry.walk().find(used).map(|path| KeepReason::of("live", &path, "is in use"))
    }
}

/// The files that other processes have open now, as device and inode: those of this
/// user, and readable ones of others, by the descriptors in /proc; empty if
/// processes are not visible there.
fn open_files() -> HashSet<(u64, u64)> {
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
fn is_locked(path: &Path) -> bool {
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

fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The time now, for the ages of entries. No shipped output depends on it.
#[expect(clippy::disallowed_methods, reason = "the age of cache entries reaches no output file")]
pub fn now() -> SystemTime {
    SystemTime::now()
}
