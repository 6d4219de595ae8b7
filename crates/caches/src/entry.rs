//! The content of a place: entries with their size and age.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use walkdir::WalkDir;

use crate::cache::{CacheDirectory, Item};

/// Companion files that are removed with a file: SQLite's, and MIOpen's records
/// of when a database was written.
const COMPANIONS: [&str; 5] = ["-wal", "-shm", "-journal", ".time", ".temp"];

/// A file or directory of a tool, with its companion files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// The file or directory.
    pub path: PathBuf,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Whether it is a symbolic link; links are not followed.
    pub is_link: bool,
    /// Companion files such as `-wal` and `-shm`.
    pub companions: Vec<PathBuf>,
    /// Number of files in it, including companions.
    pub files: u64,
    /// Total size of these files in bytes.
    pub bytes: u64,
    /// Time of the last change to any of it.
    pub changed: Option<SystemTime>,
    /// Whether it contains results of tuning.
    pub tuning: bool,
}

/// The content of a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// Whether the directory exists.
    pub exists: bool,
    /// The tool's entries, by name.
    pub entries: Vec<CacheEntry>,
    /// Number of other entries in the directory.
    pub others: u64,
}

impl CacheEntry {
    /// Time since its last change.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        Some(now.duration_since(self.changed?).unwrap_or_default())
    }
}

impl Scan {
    /// Total size of all entries in bytes.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// Time since the last change of any entry.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        self.entries.iter().filter_map(|entry| entry.age(now)).min()
    }
}

impl CacheDirectory {
    /// Scans the directory, and changes nothing. Entries that vanish during the
    /// scan are left out.
    pub fn scan(&self) -> io::Result<Scan> {
        let directory = match fs::read_dir(&self.dir) {
            Ok(directory) => directory,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Scan::default()),
            Err(error) => return Err(error),
        };
        let mut scan = Scan { exists: true, ..Scan::default() };
        let mut names: Vec<OsString> = Vec::new();
        for entry in directory {
            names.push(entry?.file_name());
        }
        names.sort();
        let mut companions = 0;
        for name in &names {
            let path = self.dir.join(name);
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let text = name.to_str().unwrap_or_default();
            let item = Item { path: &path, name: text, is_dir: metadata.is_dir() };
            // A link may be recognised by its name, and is listed so that the
            // user learns of it.
            let known =
                !text.is_empty() && (self.finds(&item) || self.finds_link(&item, &metadata));
            if known {
                let entry = self.measure(path, &metadata);
                companions += entry.companions.len() as u64;
                scan.entries.push(entry);
            } else {
                scan.others += 1;
            }
        }
        scan.others = scan.others.saturating_sub(companions);
        Ok(scan)
    }

    fn finds_link(&self, item: &Item<'_>, metadata: &fs::Metadata) -> bool {
        let as_dir = Item { is_dir: true, ..*item };
        metadata.is_symlink() && self.finds(&as_dir)
    }

    /// The entry in its present state; `None` if it is no longer the tool's.
    pub(crate) fn rescan(&self, entry: &CacheEntry) -> io::Result<Option<CacheEntry>> {
        let metadata = fs::symlink_metadata(&entry.path)?;
        let name = entry.path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let item = Item { path: &entry.path, name, is_dir: metadata.is_dir() };
        let owned = metadata.is_symlink() || self.owns(&item);
        Ok(owned.then(|| self.measure(entry.path.clone(), &metadata)))
    }

    fn measure(&self, path: PathBuf, metadata: &fs::Metadata) -> CacheEntry {
        let mut entry = CacheEntry {
            companions: if metadata.is_file() { companions(&path) } else { Vec::new() },
            is_dir: metadata.is_dir(),
            is_link: metadata.is_symlink(),
            path,
            files: 0,
            bytes: 0,
            changed: None,
            tuning: self.place.tuning,
        };
        let (mut files, mut bytes, mut changed) = (0, 0, None);
        for file in entry.walk() {
            let Ok(metadata) = fs::symlink_metadata(&file) else { continue };
            if !metadata.is_dir() {
                files += 1;
                bytes += metadata.len();
                changed = changed.max(metadata.modified().ok());
            }
        }
        entry.changed = changed.or_else(|| metadata.modified().ok());
        CacheEntry { files, bytes, ..entry }
    }
}

impl CacheEntry {
    /// All paths that are removed with it: files, directories, links. Links are
    /// not followed.
    pub(crate) fn walk(&self) -> impl Iterator<Item = PathBuf> {
        let below = WalkDir::new(&self.path).follow_links(false).follow_root_links(false);
        let below = below.into_iter().flatten().map(walkdir::DirEntry::into_path);
        below.chain(self.companions.clone())
    }
}

fn companions(path: &Path) -> Vec<PathBuf> {
    let beside = COMPANIONS.iter().map(|suffix| {
        let mut name = OsString::from(path);
        name.push(suffix);
        PathBuf::from(name)
    });
    beside.filter(|path| fs::symlink_metadata(path).is_ok_and(|m| m.is_file())).collect()
}
