//! The scratch directory of one build: locked while the build lives, and
//! swept away by the next build when it died.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statfs};
use rustix::process::geteuid;
use tempfile::{NamedTempFile, TempDir};

use crate::error::CompileError;
use crate::memory::available_memory;

const LOCK: &str = "lock";
/// Where Linux has a file system in memory, if it has one.
const MEMORY: &str = "/dev/shm";
/// What `statfs` calls such a file system.
///
/// Source: Linux, include/uapi/linux/magic.h.
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// Far more than what one job writes besides its object in the cache.
const ROOM_OF_JOB: u64 = 256 << 20;

/// A directory that goes away with this value, or, if the process is killed,
/// when the next build starts.
#[derive(Debug)]
pub(crate) struct WorkDir {
    dir: TempDir,
    _lock: File,
}

impl WorkDir {
    /// One below `<cache>/work`.
    pub(crate) fn create(cache: &Path) -> Result<Self, CompileError> {
        let parent = cache.join("work");
        fs::create_dir_all(&parent)
            .and_then(|()| Self::below(&parent))
            .map_err(CompileError::io("create", &parent))
    }

    /// One for what so many jobs write at once: in memory where there is
    /// plenty, since making and removing a dozen files costs a disk more than
    /// a small kernel costs the assembler.
    pub(crate) fn for_jobs(cache: &Path, jobs: usize) -> Result<Self, CompileError> {
        let room = ROOM_OF_JOB.saturating_mul(jobs as u64).saturating_add(ROOM_OF_JOB);
        let in_memory = room_in(Path::new(MEMORY)) >= room && available_memory() >= Some(room);
        let parent = Path::new(MEMORY).join(format!("gfxpack-{}", geteuid().as_raw()));
        let made = Some(parent).filter(|parent| in_memory && is_made_for_us_alone(parent));
        match made.map(|parent| Self::below(&parent)) {
            Some(Ok(dir)) => Ok(dir),
            _ => Self::create(cache),
        }
    }

    fn below(parent: &Path) -> io::Result<Self> {
        // Held while sweeping and making, so that no sweep ever sees a
        // directory whose own lock is not taken yet.
        let gate = File::create(parent.join(LOCK))?;
        flock(&gate, FlockOperation::LockExclusive)?;
        sweep(parent);
        let dir = tempfile::Builder::new().prefix("build-").tempdir_in(parent)?;
        let lock = File::create(dir.path().join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { dir, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Bytes that are free on a file system in memory; none on any other.
fn room_in(dir: &Path) -> u64 {
    statfs(dir).map_or(0, |stat| {
        let in_memory = stat.f_type as u64 == TMPFS_MAGIC;
        if in_memory { stat.f_bavail.saturating_mul(stat.f_bsize as u64) } else { 0 }
    })
}

/// Makes a directory that nobody else can write to, where others can make
/// some too; whether it is there now and is of that kind.
fn is_made_for_us_alone(dir: &Path) -> bool {
    DirBuilder::new().mode(0o700).create(dir).ok();
    fs::symlink_metadata(dir).is_ok_and(|meta| {
        meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o077 == 0
    })
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
    fn only_a_directory_of_ones_own_is_taken_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("place");
        assert!(is_made_for_us_alone(&place) && is_made_for_us_alone(&place));
        fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o770)).unwrap();
        assert!(!is_made_for_us_alone(&place));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(!is_made_for_us_alone(&link));
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(!is_made_for_us_alone(&file));
    }

    #[test]
    fn without_room_in_memory_jobs_write_to_the_cache() {
        assert_eq!(room_in(Path::new("/proc")), 0);
        assert_eq!(room_in(Path::new("/nonexistent")), 0);
        let cache = tempfile::tempdir().unwrap();
        let work = WorkDir::for_jobs(cache.path(), usize::MAX).unwrap();
        assert!(work.path().starts_with(cache.path()));
    }

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
