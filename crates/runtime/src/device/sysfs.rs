//! Reading small files of sysfs.

use std::path::{Path, PathBuf};

/// The text of a small file of sysfs, without the newline at its end.
pub(super) fn attribute(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    /// sysfs gives a page at most.
    const LIMIT: u64 = 1 << 16;
    let mut text = String::new();
    std::fs::File::open(path)?.take(LIMIT).read_to_string(&mut text)?;
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// The entries of a directory of sysfs by name, or none.
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
