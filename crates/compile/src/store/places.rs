//! Where what the store keeps is, below its directory.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use gfxpack_model::Digest;

/// The directory of the store below a cache, a shard's output or a shared
/// cache. The number goes up with the layout of its files, and where what
/// earlier versions kept may be wrong.
pub const VERSION: &str = "v4";

/// Where precompiled headers are kept.
pub(crate) const HEADERS: &str = "headers";

/// Where it is kept what drivers would run.
pub(crate) const COMMANDS: &str = "commands";

/// Directories whose files may go: each can be made again.
pub(super) const EVICTABLE_DIRS: [&str; 6] =
    ["objects", "refusals", "answers", "history", HEADERS, COMMANDS];
/// Those of them whose files are named by a job, and end with a description of it.
pub(super) const JOB_DIRS: [&str; 2] = ["objects", "refusals"];

/// Where files are written before they get their names.
pub(super) const TEMP: &str = "tmp";

/// Held by every build that uses the store, and alone by whoever evicts.
pub(super) const LOCK: &str = "lock";

/// How long a file that is being written may take before it is taken for a
/// killed build's: objects are written in milliseconds.
pub(super) const MAX_TEMP_AGE: Duration = Duration::from_secs(24 * 3600);

/// Whether a directory is a store, of a cache or a shard.
pub fn is_store(dir: &Path) -> bool {
    dir.ends_with(VERSION) && dir.join(LOCK).is_file() && dir.join(TEMP).is_dir()
}

/// Below the store's directory.
pub(super) fn object_path(job: Digest) -> PathBuf {
    job_path("objects", job)
}

/// Below the store's directory.
pub(super) fn refusal_path(job: Digest) -> PathBuf {
    job_path("refusals", job)
}

fn job_path(kind: &str, job: Digest) -> PathBuf {
    let name = job.to_string();
    Path::new(kind).join(&name[..2]).join(name)
}

pub(super) fn answers_path(name: Digest) -> PathBuf {
    Path::new("answers").join(format!("{name}.json"))
}

/// Whether a file is gone that was there: removed, or replaced by another machine
/// on a network file system.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

/// Removes what killed builds left half-written.
pub(super) fn sweep(temp: &Path) {
    for entry in fs::read_dir(temp).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > MAX_TEMP_AGE) {
            fs::remove_file(entry.path()).ok();
        }
    }
}
