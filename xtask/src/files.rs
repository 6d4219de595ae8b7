//! The files of a directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// All files below a directory, sorted.
///
/// # Errors
/// Where it can't be read.
pub(crate) fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("failed to read {dir:?}"))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path())
            } else {
                all.push(entry.path())
            }
        }
    }
    all.sort();
    Ok(all)
}
