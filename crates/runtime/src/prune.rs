//! Removes the caches of MIOpen versions that are no longer used.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::key_lock::LOCK_DIR;
use crate::trust::{self, GroupWrite, Untrusted};
use crate::{quarantine, version};

/// Which versions' caches to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keep {
    /// The versions with these names.
    pub versions: BTreeSet<String>,
    /// In addition, this many of the newest versions.
    pub newest: usize,
    /// Whether to remove nothing, and only report.
    pub dry_run: bool,
}

impl Keep {
    /// Keeps only this version.
    #[must_use]
    pub fn only(version: &str) -> Self {
        Self { versions: BTreeSet::from([version.to_owned()]), newest: 0, dry_run: false }
    }
}

/// A version's cache that was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Its directory. It stays if it contains other files than those of a
    /// kernel cache.
    pub directory: PathBuf,
    /// Bytes of the files removed.
    pub bytes: u64,
    /// Whether the whole directory was removed, or would be.
    pub whole: bool,
}

/// Why old versions' caches were not removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PruneError {
    /// The directory does not belong to the user.
    #[error("failed to prune kernel caches")]
    Untrusted(#[from] Untrusted),
    /// The operating system reports an error. Earlier caches are already
    /// removed.
    #[error("failed to remove `{}`", path.display())]
    Io {
        /// The path that could not be read or removed.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl PruneError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Untrusted(error) => error.hint(),
            Self::Io { .. } => "check the permissions of the directory and what is in it",
        }
    }
}

/// Removes the versions' caches in `cache`, the directory above them
/// (`~/.cache/miopen`), except for those that `keep` names.
///
/// Only directories named like versions are searched. Only kernel caches, their
/// companion files and gfxpack's locks are removed; symbolic links are left
/// alone. A program that has such a cache open continues to use it; what it
/// stores is lost when it ends.
///
/// # Errors
/// [`PruneError`].
pub fn prune_versions(cache: &Path, keep: &Keep) -> Result<Vec<Pruned>, PruneError> {
    let group = if keep.dry_run { GroupWrite::Left } else { GroupWrite::Taken };
    let cache = trust::check_directory(cache, group)?;
    let mut versions: Vec<String> = names(&cache)?
        .into_iter()
        .filter(|name| version::is_version(name) && is_real_directory(&cache.join(name)))
        .collect();
    versions.sort_by_cached_key(|name| std::cmp::Reverse(version::numbers(name)));
    let old = versions.iter().skip(keep.newest).filter(|name| !keep.versions.contains(*name));
    old.map(|name| prune(cache.join(name), keep.dry_run)).collect()
}

/// The versions with a kernel cache in `cache`, the directory above them
/// (`~/.cache/miopen`), the newest first; empty if it can't be read.
#[must_use]
pub fn cached_versions(cache: &Path) -> Vec<String> {
    let has_kernels = |directory: &Path| {
        names(directory).is_ok_and(|names| names.iter().any(|name| name.ends_with(".ukdb")))
    };
    let mut versions = names(cache).unwrap_or_default();
    versions.retain(|name| version::is_version(name) && has_kernels(&cache.join(name)));
    versions.sort_by_cached_key(|name| std::cmp::Reverse(version::numbers(name)));
    versions
}

fn prune(directory: PathBuf, dry_run: bool) -> Result<Pruned, PruneError> {
    let mut pruned = Pruned { directory, bytes: 0, whole: true };
    for name in names(&pruned.directory)? {
        let path = pruned.directory.join(&name);
        if name == LOCK_DIR && is_real_directory(&path) {
            for lock in names(&path)? {
                remove(&path.join(lock), dry_run)?;
            }
            if !dry_run {
                fs::remove_dir(&path).map_err(io(&path))?;
            }
        } else if is_cache_file(&name) {
            pruned.bytes += remove(&path, dry_run)?;
        } else {
            pruned.whole = false;
        }
    }
    if pruned.whole && !dry_run {
        fs::remove_dir(&pruned.directory).map_err(io(&pruned.directory))?;
    }
    Ok(pruned)
}

/// `gfx906_60.ukdb`, `gfx906_60.ukdb-wal`, `gfx906_60.ukdb.corrupt-1-journal`.
fn is_cache_file(name: &str) -> bool {
    let Some((_, rest)) = name.split_once(".ukdb") else { return false };
    let rest = match rest.strip_prefix(quarantine::SUFFIX) {
        Some(kept) => kept.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    matches!(rest, "" | "-journal" | "-wal" | "-shm")
}

fn remove(path: &Path, dry_run: bool) -> Result<u64, PruneError> {
    let bytes = fs::symlink_metadata(path).map_err(io(path))?.len();
    if !dry_run {
        fs::remove_file(path).map_err(io(path))?;
    }
    Ok(bytes)
}

fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn names(directory: &Path) -> Result<Vec<String>, PruneError> {
    let entries = fs::read_dir(directory).map_err(io(directory))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(io(directory))?.file_name().into_string();
        // A name that is not UTF-8 is not ours. The replacement is not a name
        // of a cache's file, so the directory stays.
        names.push(name.unwrap_or_else(|_| char::REPLACEMENT_CHARACTER.to_string()));
    }
    Ok(names)
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> PruneError {
    let path = path.to_owned();
    |source| PruneError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_caches_own_files_are_recognised() {
        for name in ["gfx906_60.ukdb", "gfx90a68.ukdb-wal", "gfx906.ukdb.corrupt-12-journal"] {
            assert!(is_cache_file(name), "{name}");
        }
        for name in ["gfx906.kdb", "notes.txt", "gfx906.ukdb.bak", "gfx906.ukdb.corrupt-1.gz"] {
            assert!(!is_cache_file(name), "{name}");
        }
    }
}
