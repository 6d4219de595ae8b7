//! A lock between processes: a locked file, which the kernel unlocks when its
//! holder dies.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::process::{self, Process};

/// The sub-directory of a user cache that holds the locks.
const LOCK_DIR: &str = ".gfxpack-locks";

/// Pauses between attempts: the first is doubled until the longest is reached.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// A held lock. Dropping it removes its file, except in a child of the process
/// that took it.
#[derive(Debug)]
pub(crate) struct KeyLock {
    process: Process,
    path: PathBuf,
    file: File,
}

impl KeyLock {
    /// Waits up to `wait` for the lock `name` in a user cache's directory;
    /// `None` if it was not free in time, or locks are not available.
    ///
    /// Uses `flock`, since the kernel releases it when the process ends,
    /// however that happens.
    pub(crate) fn acquire(directory: &Path, name: &str, wait: Duration) -> Option<Self> {
        let directory = directory.join(LOCK_DIR);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            // A symbolic link would lead the lock files out of the cache.
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
                // The previous holder may have removed the name, and another
                // process may have locked a new file of that name.
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
        // Removed while it is locked, so that the name still belongs to this file.
        // A file that another process has recreated is left alone.
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
    fn dropping_a_removed_lock_leaves_its_successor_alone() {
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
