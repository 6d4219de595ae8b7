//! The object store: one file per key, with an object or a refusal.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use gfxpack_model::Digest;

mod entry;
mod object_store;
#[cfg(test)]
mod test_support;
mod upkeep;

pub(crate) use entry::Entry;
pub use entry::{ObjectInfo, ObjectPurpose};
pub use object_store::{CorruptObject, ObjectStore};
pub use upkeep::{Damaged, Evicted, Limits, StoreStats};

/// The name of the store's directory below a cache, a shard's output or a shared cache. The number
/// is that of the files' layout.
pub const VERSION: &str = "v1";

/// The directory of precompiled headers.
pub(crate) const HEADERS: &str = "headers";

/// The directory of the commands that drivers would run.
pub(crate) const COMMANDS: &str = "commands";

/// Directories whose files may be evicted: each can be made again.
const EVICTABLE_DIRS: [&str; 5] = ["objects", "refusals", "history", HEADERS, COMMANDS];
/// Of these, the directories whose files are named by a key and end with their purpose.
const KEY_DIRS: [&str; 2] = ["objects", "refusals"];

/// The directory in which files are written before they are renamed.
const TEMP: &str = "tmp";

/// Locked by every build that uses the store, and exclusively for evicting.
const LOCK: &str = "lock";

/// A file that was being written for longer than this belongs to a killed build: writing an object
/// takes milliseconds.
const MAX_TEMP_AGE: Duration = Duration::from_secs(24 * 3600);

/// Whether a directory is a store, of a cache or a shard.
pub(crate) fn is_store(dir: &Path) -> bool {
    dir.ends_with(VERSION) && dir.join(LOCK).is_file() && dir.join(TEMP).is_dir()
}

/// Below the store's directory.
fn object_path(key: Digest) -> PathBuf {
    path_of("objects", key)
}

/// Below the store's directory.
fn refusal_path(key: Digest) -> PathBuf {
    path_of("refusals", key)
}

fn path_of(kind: &str, key: Digest) -> PathBuf {
    let name = key.to_string();
    Path::new(kind).join(&name[..2]).join(name)
}

/// Whether a file does not exist any more: removed, or replaced by another machine on a network
/// file system.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

/// Removes files that killed builds left half-written.
fn sweep(temp: &Path) {
    for entry in fs::read_dir(temp).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > MAX_TEMP_AGE) {
            fs::remove_file(entry.path()).ok();
        }
    }
}
