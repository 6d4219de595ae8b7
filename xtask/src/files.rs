//! Lists the files of a directory.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use walkdir::{DirEntry, WalkDir};

/// All files below a directory, sorted.
///
/// # Errors
/// If the directory can't be read.
pub(crate) fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    files_of(dir, |_| true)
}

/// Like [`files`], without rejected entries and everything below them.
pub(crate) fn files_of(
    dir: &Path,
    is_wanted: impl FnMut(&DirEntry) -> bool,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in WalkDir::new(dir).sort_by_file_name().into_iter().filter_entry(is_wanted) {
        let entry = entry.with_context(|| format!("failed to read {dir:?}"))?;
        if !entry.file_type().is_dir() {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}
