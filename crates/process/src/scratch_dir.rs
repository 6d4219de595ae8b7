//! Directories for temporary files: each is locked while its process runs, and if that was killed,
//! removed when the next one is made beside it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use gfxpack_model::Error;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::{NamedTempFile, TempDir};

/// The directory in a cache that holds those of all builds.
const WORK: &str = "work";
/// The beginnings of names, in caches and elsewhere.
const BUILD: &str = "build-";
const SCRATCH: &str = "gfxpack-scratch-";
/// The end of the name of a lock, which lies beside its directory.
const LOCK: &str = ".lock";

/// A directory that is removed when this value is dropped, or, if the process is killed, when the
/// next one is created beside it.
#[derive(Debug)]
pub struct ScratchDir {
    dir: TempDir,
    // Dropped last.
    _lock: NamedTempFile,
}

impl ScratchDir {
    /// For a build: below `<cache>/work`.
    ///
    /// # Errors
    /// If `<cache>/work` can't be created or written.
    pub fn in_cache(cache: &Path) -> io::Result<Self> {
        let parent = cache.join(WORK);
        fs::create_dir_all(&parent)?;
        // Compilers report paths without links.
        Self::create(&fs::canonicalize(&parent)?, BUILD)
    }

    /// In a directory that others may use too, as `/tmp`.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn below(parent: &Path) -> io::Result<Self> {
        Self::create(parent, SCRATCH)
    }

    fn create(parent: &Path, prefix: &str) -> io::Result<Self> {
        sweep(parent, prefix);
        loop {
            let mut named = tempfile::Builder::new();
            let lock = named.prefix(prefix).suffix(LOCK).tempfile_in(parent)?;
            // A sweep may be quicker, and removes what nobody has locked.
            match flock(lock.as_file(), FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if !is_at(lock.as_file(), lock.path()) => continue,
                Err(Errno::WOULDBLOCK) => continue,
                // Nothing is swept on a file system without locks.
                Ok(()) | Err(Errno::NOSYS | Errno::NOLCK | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
            let path = lock.path().with_extension("");
            let name = path.file_name().unwrap_or_default();
            let dir = tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir_in(parent)?;
            return Ok(Self { dir, _lock: lock });
        }
    }

    /// The directory of a build in which a path lies, by its name.
    pub(crate) fn of_build(path: &Path) -> Option<&Path> {
        path.ancestors().find(|dir| {
            let name = dir.file_name().map(OsStr::as_encoded_bytes);
            name.is_some_and(|name| name.starts_with(BUILD.as_bytes()))
                && dir.parent().is_some_and(|parent| parent.ends_with(WORK))
        })
    }

    /// Its path. In a cache, its links are resolved.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Creates a temporary directory.
///
/// # Errors
/// If it can't be created.
pub fn temporary_dir() -> Result<ScratchDir, Error> {
    let dir = tempfile::env::temp_dir();
    ScratchDir::below(&dir).map_err(|source| {
        let hint = match source.kind() {
            io::ErrorKind::StorageFull => {
                "make room on that disk, or set TMPDIR to a directory that may be written"
            }
            _ => "set TMPDIR to a directory that may be written",
        };
        let message = format!("failed to create a temporary directory in `{}`", dir.display());
        Error::internal(message, hint).caused_by(source)
    })
}

/// The error of writing a temporary file.
pub fn scratch_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| {
        let hint = "set TMPDIR to a directory with room for the largest kdb, unpacked";
        Error::internal(format!("failed to write `{}`", path.display()), hint).caused_by(source)
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let id = |meta: &fs::Metadata| (meta.dev(), meta.ino());
    file.metadata().ok().zip(path.symlink_metadata().ok()).is_some_and(|(a, b)| id(&a) == id(&b))
}

/// Removes this user's directories whose process is dead: their locks are free.
fn sweep(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if !name.starts_with(prefix.as_bytes()) || !name.ends_with(LOCK.as_bytes()) {
            continue;
        }
        let path = entry.path();
        if let Ok(lock) = own_lock(&path)
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let dir = path.with_extension("");
            tracing::debug!(dir = %dir.display(), "removing what a killed process left");
            // If it can't be removed, the next sweep tries again.
            if fs::remove_dir_all(&dir).is_ok() || !dir.exists() {
                fs::remove_file(&path).ok();
            }
        }
    }
}

/// Opens a lock file, for writing, which NFS needs for exclusive locks. Whoever may write to the
/// directory could have put anything else there.
fn own_lock(path: &Path) -> io::Result<File> {
    let careful = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let lock = File::options().write(true).custom_flags(careful).open(path)?;
    let meta = lock.metadata()?;
    let is_own = meta.is_file() && meta.uid() == geteuid().as_raw();
    is_own.then_some(lock).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_process_directory_is_removed_and_a_living_ones_kept() {
        let cache = tempfile::tempdir().unwrap();
        let living = ScratchDir::in_cache(cache.path()).unwrap();
        let work = cache.path().join(WORK);
        let dead = work.join("build-dead");
        fs::create_dir_all(dead.join("run")).unwrap();
        // One was killed before it created its directory, and what is a link is no lock.
        let outside = cache.path().join("outside");
        for lock in [work.join("build-dead.lock"), work.join("build-young.lock"), outside.clone()] {
            fs::write(lock, "1").unwrap();
        }
        std::os::unix::fs::symlink(&outside, work.join("build-other.lock")).unwrap();
        fs::create_dir(work.join("build-other")).unwrap();
        let second = ScratchDir::in_cache(cache.path()).unwrap();
        assert!(living.path().exists() && second.path().exists());
        assert!(work.join("build-other").exists() && !dead.exists());
        assert_eq!(fs::read_to_string(outside).unwrap(), "1");
        drop([living, second]);
        let left = fs::read_dir(work).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["build-other", "build-other.lock"]);
    }

    #[test]
    fn none_is_removed_while_it_is_made() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let dir = ScratchDir::below(parent.path()).unwrap();
                        fs::write(dir.path().join("file"), "").unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
