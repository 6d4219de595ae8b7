//! Finds, writes and removes files in a directory of packages.

use gfxpack_model::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_process::write_atomic;

use crate::read::PackageKind;

/// Every .deb and .rpm below `dir`, sorted by path.
///
/// # Errors
/// If a directory can't be read.
pub fn packages(dir: &Path) -> Result<Vec<PathBuf>> {
    files(dir, |path| {
        matches!(PackageKind::from_name(path), Some(PackageKind::Deb | PackageKind::Rpm))
            && path.is_file()
    })
}

/// Everything but directories below `dir` whose path is wanted, sorted. Links to
/// directories are not followed, since they may form loops.
///
/// # Errors
/// If a directory can't be read.
pub(crate) fn files(dir: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).map_err(Error::io("read", &dir))? {
            let entry = entry.map_err(Error::io("read", &dir))?;
            let kind = entry.file_type().map_err(Error::io("read", &dir))?;
            let path = entry.path();
            if kind.is_dir() {
                pending.push(path);
            } else if is_wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file atomically, in place of a link if there is one, and creates its
/// directory. A file with the same bytes is left alone, so that clients do not
/// download it again.
pub(super) fn put(path: &Path, bytes: &[u8]) -> Result {
    let is_file = path.symlink_metadata().is_ok_and(|there| there.is_file());
    if is_file && std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    write_atomic(path, &[bytes]).map_err(Error::io("write", path))
}

/// Rejects a path below `dir` with a link in it: what is written there would be
/// written elsewhere.
pub(super) fn no_link(dir: &Path, below: &Path) -> Result {
    let mut path = dir.to_owned();
    for part in below {
        path.push(part);
        if path.is_symlink() {
            return Err(Error::usage(
                format!("failed to write to `{}`: it is a link", path.display()),
                "remove the link, which may lead to files that are not yours",
            ));
        }
    }
    Ok(())
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> Result {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
