//! The scratch directory of one build: locked while the build runs, and removed by the next build
//! if the build was killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tempfile::TempDir;

const LOCK: &str = "lock";
/// The directory in a cache that holds those of all builds.
const PARENT: &str = "work";
const PREFIX: &str = "build-";

/// A directory below `<cache>/work`, which is removed when this value is dropped, or, if the
/// process is killed, when the next build starts.
#[derive(Debug)]
pub struct WorkDir {
    dir: TempDir,
    _lock: File,
}

impl WorkDir {
    /// Creates a directory, and removes those of killed builds.
    ///
    /// # Errors
    /// If `<cache>/work` can't be created or written.
    pub fn create(cache: &Path) -> io::Result<Self> {
        let parent = cache.join(PARENT);
        fs::create_dir_all(&parent)?;
        // Compilers report paths without links.
        let parent = fs::canonicalize(&parent)?;
        // Locked while sweeping and creating, so that no other build removes a directory whose own
        // lock is not taken yet.
        let gate = lock_file(&parent)?;
        lock(&gate, FlockOperation::LockExclusive)?;
        sweep(&parent);
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
        let held = lock_file(dir.path())?;
        lock(&held, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { dir, _lock: held })
    }

    /// The work directory in which a path lies, by its name.
    pub(crate) fn of(path: &Path) -> Option<&Path> {
        path.ancestors().find(|dir| {
            let name = dir.file_name().map(OsStr::as_encoded_bytes);
            name.is_some_and(|name| name.starts_with(PREFIX.as_bytes()))
                && dir.parent().is_some_and(|parent| parent.ends_with(PARENT))
        })
    }

    /// Its path, links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Opens the lock file of a directory, and creates it if necessary: a build may have been killed
/// between creating the two. It is opened for writing, which NFS needs for exclusive locks. If it
/// is a link, this is an error.
fn lock_file(dir: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(no_link)
        .open(dir.join(LOCK))
}

/// Locks a file. On a file system without locks, nothing is locked, and nothing is removed by
/// sweeps.
fn lock(file: &File, operation: FlockOperation) -> io::Result<()> {
    match flock(file, operation) {
        Err(Errno::NOSYS | Errno::NOLCK | Errno::OPNOTSUPP) => Ok(()),
        locked => Ok(locked?),
    }
}

/// Removes the directories of killed builds, which are not locked.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        // Builds create no links there.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let dir = entry.path();
        let taken = |file| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if lock_file(&dir).is_ok_and(taken) {
            tracing::debug!(dir = %dir.display(), "removing what a killed build left");
            fs::remove_dir_all(&dir).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_builds_directory_is_removed_and_a_running_ones_kept() {
        let cache = tempfile::tempdir().unwrap();
        let living = WorkDir::create(cache.path()).unwrap();
        let dead = cache.path().join("work/dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        // A directory whose build was killed before it created the lock.
        let young = cache.path().join("work/young");
        fs::create_dir(&young).unwrap();
        // A directory whose lock can't be opened.
        let other = cache.path().join("work/other");
        fs::create_dir(&other).unwrap();
        let (outside, link) = (cache.path().join("outside"), other.join(LOCK));
        fs::write(&outside, "1").unwrap();
        std::os::unix::fs::symlink(&outside, link).unwrap();
        let second = WorkDir::create(cache.path()).unwrap();
        assert!(living.path().exists() && second.path().exists() && other.exists());
        assert!(!dead.exists() && !young.exists());
        assert_eq!(fs::read_to_string(outside).unwrap(), "1");
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
