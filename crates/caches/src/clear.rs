//! Removes cache entries, except those that must be kept.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::entry::CacheEntry;
use crate::known::CacheDirectory;
use crate::live::{self, OpenFiles};
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
    open: OpenFiles,
}

/// Why an entry is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeepReason {
    /// It is a result of tuning.
    #[error("it is a result of tuning: --tuning removes it too")]
    Tuning,
    /// It contains this result of tuning.
    #[error("`{0}` is a result of tuning: --tuning removes it too")]
    TuningWithin(PathBuf),
    /// It was changed too recently.
    #[error("it was changed lately")]
    Young,
    /// Another process has this file open, or holds a lock on it.
    #[error("`{0}` is in use")]
    Live(PathBuf),
    /// It, or its directory, is a symbolic link.
    #[error("`{0}` is a symbolic link")]
    Link(PathBuf),
    /// It changed after it was found, and is no longer the tool's.
    #[error("`{0}` is something else than what was found")]
    Replaced(PathBuf),
    /// This path belongs to another user, or everybody may rename its entries.
    #[error("`{0}` belongs to another user, or to everybody")]
    Foreign(PathBuf),
    /// This path is `/`, the home directory, or above it.
    #[error("`{0}` is the root, the home directory, or above it")]
    Unsafe(PathBuf),
    /// Another file system is mounted at this path.
    #[error("another file system is at `{0}`")]
    Mount(PathBuf),
    /// This path can't be read.
    #[error("`{0}` can't be looked at")]
    Unreadable(PathBuf),
    /// It belongs to a version of the tool that is not to be cleared.
    #[error("it belongs to another version")]
    OtherVersion,
    /// It belongs to the newest version, which is kept.
    #[error("it belongs to the newest version")]
    NewestVersion,
    /// Its name contains no version.
    #[error("its name does not tell a version")]
    NoVersion,
}

impl KeepReason {
    /// The reason in machine-readable output: `live`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tuning => "tuning",
            Self::TuningWithin(_) => "tuning-within",
            Self::Replaced(_) => "replaced",
            Self::Young => "young",
            Self::Live(_) => "live",
            Self::Link(_) => "link",
            Self::Foreign(_) => "foreign",
            Self::Unsafe(_) => "unsafe",
            Self::Mount(_) => "mount",
            Self::Unreadable(_) => "unreadable",
            Self::OtherVersion => "other-version",
            Self::NewestVersion => "newest-version",
            Self::NoVersion => "no-version",
        }
    }
}

/// Why an entry could not be removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// It must be kept.
    #[error("failed to remove `{path}`: {why}")]
    Kept {
        /// The entry.
        path: PathBuf,
        /// The reason.
        why: KeepReason,
    },
    /// The operating system reports an error.
    #[error("failed to remove `{path}`")]
    Io {
        /// The entry or a part of it.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl CacheCleaner {
    /// Clearing by this process's user. Reads which files are open now.
    #[must_use]
    pub fn new(environment: &UserEnvironment, now: SystemTime) -> Self {
        Self {
            older_than: None,
            tuning: false,
            now,
            user: rustix::process::geteuid().as_raw(),
            homes: environment.homes().filter_map(|home| fs::canonicalize(home).ok()).collect(),
            open: OpenFiles::read(),
        }
    }

    /// Why the entry must be kept; `None` if it may be removed.
    #[must_use]
    pub fn reason_to_keep(
        &self,
        directory: &CacheDirectory,
        entry: &CacheEntry,
    ) -> Option<KeepReason> {
        if entry.tuning && !self.tuning {
            return Some(KeepReason::Tuning);
        }
        if let Some(age) = self.older_than {
            let changed = entry.changed.and_then(|changed| self.now.duration_since(changed).ok());
            if changed.is_none_or(|changed| changed < age) {
                return Some(KeepReason::Young);
            }
        }
        self.directory(directory)
            .or_else(|| self.contents(entry))
            .or_else(|| self.tuning_in(entry))
            .or_else(|| self.use_of(entry))
    }

    /// Removes the entry with its companion files, unless it must be kept; this
    /// is decided by its present state, not by that at the scan. An entry that
    /// no longer exists counts as removed.
    ///
    /// # Errors
    /// [`RemoveError`]. The entry may then be partly removed, as after an
    /// interrupted clean-up by its own tool.
    pub fn remove(
        &self,
        directory: &CacheDirectory,
        entry: &CacheEntry,
    ) -> Result<(), RemoveError> {
        let kept = |why| Err(RemoveError::Kept { path: entry.path.clone(), why });
        let entry = &match directory.rescan(entry) {
            Ok(Some(entry)) => entry,
            Ok(None) => return kept(KeepReason::Replaced(entry.path.clone())),
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(RemoveError::Io { path: entry.path.clone(), source }),
        };
        if let Some(why) = self.reason_to_keep(directory, entry) {
            return kept(why);
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
                    return Err(RemoveError::Io { path: path.clone(), source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The problem of the entry's directory, if any.
    fn directory(&self, directory: &CacheDirectory) -> Option<KeepReason> {
        let dir = &directory.dir;
        let Ok(metadata) = fs::symlink_metadata(dir) else {
            return Some(KeepReason::Unreadable(dir.clone()));
        };
        if metadata.is_symlink() {
            return Some(KeepReason::Link(dir.clone()));
        }
        let Ok(real) = fs::canonicalize(dir) else {
            return Some(KeepReason::Unreadable(dir.clone()));
        };
        if self.is_unsafe(&real) {
            return Some(KeepReason::Unsafe(dir.clone()));
        }
        if let Some(why) = self.parents(&real) {
            return Some(why);
        }
        // The shared directory for temporary files belongs to nobody.
        if directory.shared && metadata.mode() & STICKY != 0 && metadata.uid() == ROOT {
            return None;
        }
        if metadata.uid() != self.user {
            return Some(KeepReason::Foreign(dir.clone()));
        }
        None
    }

    /// Whether somebody could replace the directory while it is cleared.
    fn parents(&self, real: &Path) -> Option<KeepReason> {
        // In a container the administrator may have another number.
        let system = fs::symlink_metadata("/").map_or(ROOT, |root| root.uid());
        for parent in real.ancestors().skip(1) {
            let Ok(metadata) = fs::symlink_metadata(parent) else {
                return Some(KeepReason::Unreadable(parent.to_owned()));
            };
            let open = metadata.mode() & (OTHERS_WRITE | STICKY) == OTHERS_WRITE;
            if open || ![self.user, ROOT, system].contains(&metadata.uid()) {
                return Some(KeepReason::Foreign(parent.to_owned()));
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
            return Some(KeepReason::Link(entry.path.clone()));
        }
        let Ok(real) = fs::canonicalize(&entry.path) else {
            return Some(KeepReason::Unreadable(entry.path.clone()));
        };
        if self.is_unsafe(&real) {
            return Some(KeepReason::Unsafe(entry.path.clone()));
        }
        let Ok(device) = fs::symlink_metadata(&entry.path).map(|metadata| metadata.dev()) else {
            return Some(KeepReason::Unreadable(entry.path.clone()));
        };
        for path in entry.walk() {
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return Some(KeepReason::Unreadable(path)),
                Ok(metadata) if metadata.uid() != self.user => {
                    return Some(KeepReason::Foreign(path));
                }
                Ok(metadata) if metadata.dev() != device => return Some(KeepReason::Mount(path)),
                // A directory that can't be listed can't be checked.
                Ok(metadata) if metadata.is_dir() && fs::read_dir(&path).is_err() => {
                    return Some(KeepReason::Unreadable(path));
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
        entry.walk().find(is_result).map(KeepReason::TuningWithin)
    }

    /// Whether another process is using any part of it.
    fn use_of(&self, entry: &CacheEntry) -> Option<KeepReason> {
        let used = |path: &PathBuf| self.open.has(path) || live::is_locked(path);
        entry.walk().find(used).map(KeepReason::Live)
    }
}

fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
