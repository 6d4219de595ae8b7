//! Removing entries: what is kept, and why.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::entry::CacheEntry;
use crate::known::Place;
use crate::live::{self, OpenFiles};
use crate::surroundings::Surroundings;

/// Permission bit: in a directory of many users, each may remove their own.
const STICKY: u32 = 0o1000;
/// Permission bit: everybody may write.
const OTHERS_WRITE: u32 = 0o002;
/// How the names of results of tuning end: MIOpen's, Triton's, Inductor's.
const RESULTS: [&str; 5] = [".udb.txt", ".ufdb.txt", ".udb", ".autotune.json", ".best_config"];
/// The administrator.
const ROOT: u32 = 0;

/// What is to be removed, and by whom.
#[derive(Debug, Clone)]
pub struct Clearing {
    /// Only what has not been changed for that long.
    pub older_than: Option<Duration>,
    /// Results of tuning too.
    pub tuning: bool,
    now: SystemTime,
    user: u32,
    homes: Vec<PathBuf>,
    open: OpenFiles,
}

/// Why an entry is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Kept {
    /// It is a result of tuning.
    #[error("it is a result of tuning: --tuning removes it too")]
    Tuning,
    /// This result of tuning is in it.
    #[error("`{0}` is a result of tuning: --tuning removes it too")]
    TuningWithin(PathBuf),
    /// It was changed too lately.
    #[error("it was changed lately")]
    Young,
    /// Another process has it open, or holds a lock on it: this file.
    #[error("`{0}` is in use")]
    Live(PathBuf),
    /// It, or the directory it is in, is a symbolic link.
    #[error("`{0}` is a symbolic link")]
    Link(PathBuf),
    /// It is not what it was when it was found, and not the tool's any more.
    #[error("`{0}` is something else than what was found")]
    Replaced(PathBuf),
    /// This belongs to another user, or everybody may rename what is in it.
    #[error("`{0}` belongs to another user, or to everybody")]
    Foreign(PathBuf),
    /// This is `/`, the home directory, or above it.
    #[error("`{0}` is the root, the home directory, or above it")]
    Unsafe(PathBuf),
    /// Another file system is mounted there.
    #[error("another file system is at `{0}`")]
    Mount(PathBuf),
    /// It can't be looked at.
    #[error("`{0}` can't be looked at")]
    Unreadable(PathBuf),
    /// It belongs to another version of the tool than the one that is meant.
    #[error("it belongs to another version")]
    OtherVersion,
    /// It belongs to the newest version, which is to stay.
    #[error("it belongs to the newest version")]
    NewestVersion,
    /// Its name tells no version.
    #[error("its name does not tell a version")]
    NoVersion,
}

impl Kept {
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
        why: Kept,
    },
    /// The system does not let us.
    #[error("failed to remove `{path}`")]
    Io {
        /// The entry or a part of it.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Clearing {
    /// By this process's user. Looks at what is open now.
    #[must_use]
    pub fn new(surroundings: &Surroundings, now: SystemTime) -> Self {
        Self {
            older_than: None,
            tuning: false,
            now,
            user: rustix::process::geteuid().as_raw(),
            homes: surroundings.homes().filter_map(|home| fs::canonicalize(home).ok()).collect(),
            open: OpenFiles::read(),
        }
    }

    /// Why the entry is to be kept; none where it may go.
    #[must_use]
    pub fn keeps(&self, place: &Place, entry: &CacheEntry) -> Option<Kept> {
        if entry.tuning && !self.tuning {
            return Some(Kept::Tuning);
        }
        if let Some(age) = self.older_than {
            let changed = entry.changed.and_then(|changed| self.now.duration_since(changed).ok());
            if changed.is_none_or(|changed| changed < age) {
                return Some(Kept::Young);
            }
        }
        self.directory(place)
            .or_else(|| self.contents(entry))
            .or_else(|| self.tuning_in(entry))
            .or_else(|| self.use_of(entry))
    }

    /// Removes the entry with what stands beside it, unless it is to be kept:
    /// as it is now, not as it was found. What is gone is removed.
    ///
    /// # Errors
    /// [`RemoveError`]. What could not be removed may be half gone, as it is
    /// when its tool's own clean-up is interrupted.
    pub fn remove(&self, place: &Place, entry: &CacheEntry) -> Result<(), RemoveError> {
        let kept = |why| Err(RemoveError::Kept { path: entry.path.clone(), why });
        let entry = &match place.again(entry) {
            Ok(Some(entry)) => entry,
            Ok(None) => return kept(Kept::Replaced(entry.path.clone())),
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(RemoveError::Io { path: entry.path.clone(), source }),
        };
        if let Some(why) = self.keeps(place, entry) {
            return kept(why);
        }
        // Companions first: a database without its log is whole or older, a
        // log without its database would be taken for the next one's. Not so
        // the journal: without it the database is neither, and SQLite removes
        // one that has no database.
        let is_journal =
            |path: &&PathBuf| path.as_os_str().as_encoded_bytes().ends_with(b"-journal");
        let (journals, others): (Vec<&PathBuf>, Vec<_>) =
            entry.companions.iter().partition(is_journal);
        for path in others.into_iter().chain([&entry.path]).chain(journals) {
            let removed =
                if entry.is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            match removed {
                // A part of it may be what was not found.
                Err(source) if source.kind() != io::ErrorKind::NotFound || !is_gone(path) => {
                    return Err(RemoveError::Io { path: path.clone(), source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What is wrong with the directory that the entry is in.
    fn directory(&self, place: &Place) -> Option<Kept> {
        let dir = &place.dir;
        let Ok(metadata) = fs::symlink_metadata(dir) else {
            return Some(Kept::Unreadable(dir.clone()));
        };
        if metadata.is_symlink() {
            return Some(Kept::Link(dir.clone()));
        }
        let Ok(real) = fs::canonicalize(dir) else {
            return Some(Kept::Unreadable(dir.clone()));
        };
        if self.is_unsafe(&real) {
            return Some(Kept::Unsafe(dir.clone()));
        }
        if let Some(why) = self.parents(&real) {
            return Some(why);
        }
        // Everybody's directory for temporary files is nobody's.
        if place.shared && metadata.mode() & STICKY != 0 && metadata.uid() == ROOT {
            return None;
        }
        if metadata.uid() != self.user {
            return Some(Kept::Foreign(dir.clone()));
        }
        None
    }

    /// Who could put another directory there while this one is cleared.
    fn parents(&self, real: &Path) -> Option<Kept> {
        // In a container the administrator may have another number.
        let system = fs::symlink_metadata("/").map_or(ROOT, |root| root.uid());
        for parent in real.ancestors().skip(1) {
            let Ok(metadata) = fs::symlink_metadata(parent) else {
                return Some(Kept::Unreadable(parent.to_owned()));
            };
            let open = metadata.mode() & (OTHERS_WRITE | STICKY) == OTHERS_WRITE;
            if open || ![self.user, ROOT, system].contains(&metadata.uid()) {
                return Some(Kept::Foreign(parent.to_owned()));
            }
        }
        None
    }

    fn is_unsafe(&self, real: &Path) -> bool {
        real.parent().is_none() || self.homes.iter().any(|home| home.starts_with(real))
    }

    /// What is wrong with any part of the entry.
    fn contents(&self, entry: &CacheEntry) -> Option<Kept> {
        if entry.is_link {
            return Some(Kept::Link(entry.path.clone()));
        }
        let Ok(real) = fs::canonicalize(&entry.path) else {
            return Some(Kept::Unreadable(entry.path.clone()));
        };
        if self.is_unsafe(&real) {
            return Some(Kept::Unsafe(entry.path.clone()));
        }
        let Ok(device) = fs::symlink_metadata(&entry.path).map(|metadata| metadata.dev()) else {
            return Some(Kept::Unreadable(entry.path.clone()));
        };
        for path in entry.walk() {
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return Some(Kept::Unreadable(path)),
                Ok(metadata) if metadata.uid() != self.user => return Some(Kept::Foreign(path)),
                Ok(metadata) if metadata.dev() != device => return Some(Kept::Mount(path)),
                // What can't be listed can't be judged.
                Ok(metadata) if metadata.is_dir() && fs::read_dir(&path).is_err() => {
                    return Some(Kept::Unreadable(path));
                }
                Ok(_) => {}
            }
        }
        None
    }

    /// Results of tuning among what was compiled, as Inductor's.
    fn tuning_in(&self, entry: &CacheEntry) -> Option<Kept> {
        if self.tuning {
            return None;
        }
        let is_result = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            RESULTS.iter().any(|end| name.ends_with(end.as_bytes()))
        };
        entry.walk().find(is_result).map(Kept::TuningWithin)
    }

    /// Who is using any part of it.
    fn use_of(&self, entry: &CacheEntry) -> Option<Kept> {
        let used = |path: &PathBuf| self.open.has(path) || live::is_locked(path);
        entry.walk().find(used).map(Kept::Live)
    }
}

fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
