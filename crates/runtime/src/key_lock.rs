//! A lock between processes: a file of its name that is locked, and freed by the
//! kernel when its holder dies.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::process::{self, Process};

/// The sub-directory of a user cache that holds the locks.
pub(crate) const LOCK_DIR: &str = ".gfxpack-locks";

/// Pauses between attempts: the first is doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// A lock that is held. Dropping it removes its file, except in a child of the
/// process that took it.
#[derive(Debug)]
pub(crate) struct KeyLock {
    process: Process,
    path: PathBuf,
    file: File,
}

impl KeyLock {
    /// Waits up to `wait` for the lock of that name in a user cache's
    /// directory; none where that was not enough, or locks are not to be had.
    ///
    /// `flock`, since the kernel lets go of it with the process, however that
    /// ends.
    pub(crate) fn acquire(directory: &Path, name: &str, wait: Duration) -> Option<Self> {
        let directory = directory.join(LOCK_DIR);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            // A link would lead the files out of the cache.
            Err(_) if !std::fs::symlink_metadata(&directory).ok()?.is_dir() => return None,
            _ => {}
        }
        let path = directory.join(name);
        let deadline = Instant::now().checked_add(wait);
        let mut pause = FIRST_PAUSE;
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
                .open(&path)
                .ok()?;
            match file.try_lock() {
                // Who had it before may have removed the name, and somebody
                // else locked a new file of that name.
                Ok(()) if is_named(&file, &path) => {
                    return Some(Self { process: process::process(), path, file });
                }
                Ok(()) => continue,
                Err(std::fs::TryLockError::WouldBlock) => {}
                Err(std::fs::TryLockError::Error(_)) => return None,
            }
            drop(file);
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // While it is held, so that the name stays this file's, if nobody has
        // tidied it away before and another process made it anew.
        if self.process == process::process() && is_named(&self.file, &self.path) {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

fn is_named(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(named)) = (file.metadata(), std::fs::symlink_metadata(path)) else {
        return false;
    };
    (held.dev(), held.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_at_a_time_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let acquire = |wait| KeyLock::acquire(directory.path(), "a", wait);
        let held = acquire(Duration::ZERO).unwrap();
        assert!(acquire(Duration::from_millis(5)).is_none());
        let other = KeyLock::acquire(directory.path(), "b", Duration::ZERO);
        assert!(other.is_some(), "another name is another lock");
        drop((held, other));
        let held = acquire(Duration::ZERO).unwrap();
        drop(held);
        assert_eq!(std::fs::read_dir(directory.path().join(LOCK_DIR)).unwrap().count(), 0);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        std::fs::create_dir(directory.path().join(LOCK_DIR)).unwrap();
        std::os::unix::fs::symlink(&victim, directory.path().join(LOCK_DIR).join("a")).unwrap();
        assert!(KeyLock::acquire(directory.path(), "a", Duration::ZERO).is_none());
        assert!(!victim.exists());
    }

    #[test]
    fn a_link_in_the_directorys_place_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let link = directory.path().join(LOCK_DIR);
        std::os::unix::fs::symlink(elsewhere.path(), link).unwrap();
        assert!(KeyLock::acquire(directory.path(), "a", Duration::ZERO).is_none());
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_that_was_tidied_away_leaves_the_next_ones_alone() {
        let directory = tempfile::tempdir().unwrap();
        let acquire = || KeyLock::acquire(directory.path(), "a", Duration::ZERO);
        let first = acquire().unwrap();
        std::fs::remove_file(&first.path).unwrap();
        let second = acquire().unwrap();
        drop(first);
        assert!(acquire().is_none(), "the second still holds it");
        drop(second);
        assert!(acquire().is_some());
    }
}
