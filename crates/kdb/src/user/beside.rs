//! The files that SQLite keeps beside a kdb.

use std::path::Path;

/// The size of a file that SQLite keeps beside this one; none where there is
/// no such file.
pub(crate) fn size_beside(path: &Path, suffix: &str) -> Option<u64> {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::symlink_metadata(name).ok().map(|metadata| metadata.len())
}

/// Whether a log lies beside the file: most likely another program has it open
/// in WAL mode.
pub(crate) fn has_log(path: &Path) -> bool {
    size_beside(path, "-wal").is_some()
}
