//! Finds, writes and removes files in a directory of packages.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_process::{FileError, write_atomic};

use crate::read::PackageKind;

/// Every .deb and .rpm below `dir`, sorted by path.
///
/// # Errors
/// If a directory can't be read.
pub fn packages(dir: &Path) -> Result<Vec<PathBuf>, FileError> {
    files(dir, |path| {
        matches!(PackageKind::from_name(path), Some(PackageKind::Deb | PackageKind::Rpm))
    })
}

/// Every file below `dir` whose path is wanted, sorted. Links to files are
/// followed, as the programs that make indexes do; links to directories are not,
/// since they may form loops.
///
/// # Errors
/// If a directory can't be read.
pub(crate) fn files(
    dir: &Path,
    is_wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, FileError> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).map_err(FileError::io("read", &dir))? {
            let entry = entry.map_err(FileError::io("read", &dir))?;
            let kind = entry.file_type().map_err(FileError::io("read", &dir))?;
            let path = entry.path();
            if kind.is_dir() {
                pending.push(path);
            } else if is_wanted(&path) && path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file atomically, also at the end of a link, and creates its
/// directory. A file with the same bytes is left alone, so that clients do not
/// download it again.
pub(super) fn put(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let end = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    write_atomic(&end, &[bytes]).map_err(FileError::io("write", path))
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> Result<(), FileError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
