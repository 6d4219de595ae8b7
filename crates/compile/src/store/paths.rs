//! Paths below the store's directory.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use gfxpack_model::Digest;

/// The name of the store's directory below a cache, a shard's output or a shared cache. The number
/// is that of the files' layout.
pub const VERSION: &str = "v1";

/// The directory of precompiled headers.
pub(crate) const HEADERS: &str = "headers";

/// The directory of the commands that drivers would run.
pub(crate) const COMMANDS: &str = "commands";

/// Directories whose files may be evicted: each can be made again.
pub(super) const EVICTABLE_DIRS: [&str; 5] = ["objects", "refusals", "history", HEADERS, COMMANDS];
/// Of these, the directories whose files are named by a key and end with their purpose.
pub(super) const KEY_DIRS: [&str; 2] = ["objects", "refusals"];

/// The directory in which files are written before they are renamed.
pub(super) const TEMP: &str = "tmp";

/// Locked by every build that uses the store, and exclusively for evicting.
pub(super) const LOCK: &str = "lock";

/// A file that was being written for longer than this belongs to a killed build: writing an object
/// takes milliseconds.
pub(super) const MAX_TEMP_AGE: Duration = Duration::from_secs(24 * 3600);

/// Whether a directory is a store, of a cache or a shard.
pub(crate) fn is_store(dir: &Path) -> bool {
    dir.ends_with(VERSION) && dir.join(LOCK).is_file() && dir.join(TEMP).is_dir()
}

/// Below the store's directory.
pub(super) fn object_path(key: Digest) -> PathBuf {
    path_of("objects", key)
}

/// Below the store's directory.
pub(super) fn refusal_path(key: Digest) -> PathBuf {
    path_of("refusals", key)
}

fn path_of(kind: &str, key: Digest) -> PathBuf {
    let name = key.to_string();
    Path::new(kind).join(&name[..2]).join(name)
}

/// Whether a file does not exist any more: removed, or replaced by another machine on a network
/// file system.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

/// Removes files that killed builds left half-written.
pub(super) fn sweep(temp: &Path) {
    for entry in fs::read_dir(temp).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > MAX_TEMP_AGE) {
            fs::remove_file(entry.path()).ok();
        }
    }
}
