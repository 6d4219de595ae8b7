//! Reads small files of sysfs.

use std::path::{Path, PathBuf};

/// The text of a small file of sysfs, without its final newline.
pub(super) fn attribute(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    /// Larger than any file of sysfs, which is a page at most.
    const LIMIT: u64 = 1 << 16;
    let mut text = String::new();
    std::fs::File::open(path)?.take(LIMIT).read_to_string(&mut text)?;
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// The entries of a directory of sysfs by name; empty if it can't be read.
pub(super) fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let mut entries: Vec<(String, PathBuf)> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    entries.sort();
    entries
}
