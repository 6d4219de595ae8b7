//! The scratch directory of one build: locked while the build lives, and
//! swept away by the next build when it died.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tempfile::{NamedTempFile, TempDir};

use crate::error::CompileError;

const LOCK: &str = "lock";

/// A directory below `<cache>/work` that goes away with this value, or, if
/// the process is killed, when the next build starts.
#[derive(Debug)]
pub(crate) struct WorkDir {
    dir: TempDir,
    _lock: File,
}

impl WorkDir {
    pub(crate) fn create(cache: &Path) -> Result<Self, CompileError> {
        let parent = cache.join("work");
        let make = || -> io::Result<Self> {
            fs::create_dir_all(&parent)?;
            // Held while sweeping and making, so that no sweep ever sees a
            // directory whose own lock is not taken yet.
            let gate = File::create(parent.join(LOCK))?;
            flock(&gate, FlockOperation::LockExclusive)?;
            sweep(&parent);
            let dir = tempfile::Builder::new().prefix("build-").tempdir_in(&parent)?;
            let lock = File::create(dir.path().join(LOCK))?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok(Self { dir, _lock: lock })
        };
        make().map_err(CompileError::io("create", &parent))
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes what killed builds left: directories whose lock nobody holds.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let dir = entry.path();
        let held = File::open(dir.join(LOCK))
            .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err());
        if dir.is_dir() && !held {
            tracing::debug!(dir = %dir.display(), "removing what a killed build left");
            fs::remove_dir_all(&dir).ok();
        }
    }
}

/// Writes a file whole or not at all: a temporary file beside it, renamed
/// over it once every byte is there. Missing directories are made.
///
/// # Errors
/// What the file system says; the file is then as it was.
pub fn write_atomic(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    write_atomic_with(path, |out| parts.iter().try_for_each(|part| out.write_all(part)))
}

/// The same with what `write` writes.
pub(crate) fn write_atomic_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let parent: PathBuf = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.into(),
        _ => ".".into(),
    };
    fs::create_dir_all(&parent)?;
    let mut file = BufWriter::new(NamedTempFile::new_in(&parent)?);
    write(&mut file)?;
    persist(file.into_inner().map_err(io::IntoInnerError::into_error)?, path, &parent)
}

/// The same by way of a directory for temporary files on the same disk.
pub(crate) fn write_atomic_by(path: &Path, temp_dir: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(temp_dir)?;
    for part in parts {
        file.write_all(part)?;
    }
    persist(file, path, temp_dir)
}

/// Puts a temporary file into its place.
fn persist(file: NamedTempFile, path: &Path, temp_dir: &Path) -> io::Result<()> {
    file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    match file.persist(path) {
        Err(error) if error.error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(temp_dir))?;
            error.file.persist(path).map_err(|error| error.error)?;
        }
        other => {
            other.map_err(|error| error.error)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_builds_directory_goes_and_a_living_ones_stays() {
        let cache = tempfile::tempdir().unwrap();
        let living = WorkDir::create(cache.path()).unwrap();
        let dead = cache.path().join("work/dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let second = WorkDir::create(cache.path()).unwrap();
        assert!(living.path().exists() && second.path().exists() && !dead.exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
