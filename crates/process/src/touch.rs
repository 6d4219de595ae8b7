//! Records when a file of a cache was last used, for eviction: its modification time, to the hour.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};

/// A finer value would cause a write for every file that is read.
const GRAIN: Duration = Duration::from_secs(3600);

/// Records that a file of a cache was used. Returns whether the file exists.
pub fn touch(path: &Path) -> bool {
    File::open(path).map(|file| note_use(&file)).is_ok()
}

/// Records that a file was used. Access times would do this, but they are switched off on most
/// machines.
pub fn note_use(file: &File) {
    let modified = file.metadata().and_then(|meta| meta.modified()).ok();
    if modified.and_then(|modified| modified.elapsed().ok()).is_some_and(|age| age > GRAIN) {
        let time = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
        let times =
            Timestamps { last_access: time(UTIME_OMIT), last_modification: time(UTIME_NOW) };
        // Fails in a directory of another user, who evicts by his own use.
        futimens(file, &times).ok();
    }
}
