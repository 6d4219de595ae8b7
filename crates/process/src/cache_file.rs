//! Files of caches and outputs: written whole or not at all, read by their checksums, and marked as
//! used.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use gfxpack_model::Digest;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::{NamedTempFile, PersistError};

/// The length of a digest in hexadecimal.
const SEAL: usize = 64;
/// A finer value would cause a write for every file that is read.
const GRAIN: Duration = Duration::from_secs(3600);

/// Writes a file of a cache completely or not at all: writes a temporary file beside it, then
/// renames it. Creates missing directories. Whoever may use the cache may read the file.
///
/// # Errors
/// The error of the file system; the file is then unchanged.
pub fn write_atomic(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let file = beside(path, |out| parts.iter().try_for_each(|part| out.write_all(part)))?;
    Ok(persist(file, path)?)
}

/// The same for an output, with the content written by `write`. The umask decides who may read it.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_output(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    beside(path, write)?.persist(path)?;
    Ok(())
}

/// A temporary file beside this one with the content that `write` writes.
fn beside(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    // Reduced by the umask.
    let usual = fs::Permissions::from_mode(0o666);
    let file = tempfile::Builder::new().permissions(usual).tempfile_in(parent)?;
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)
}

/// As [`write_atomic`], with the temporary file in a directory on the same disk. Missing directories are
/// created as by [`create_dir_as_above`].
///
/// # Errors
/// As [`write_atomic`].
pub fn write_atomic_by(path: &Path, temp_dir: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(temp_dir)?;
    for part in parts {
        file.write_all(part)?;
    }
    match persist(file, path) {
        Err(error) if error.error.kind() == io::ErrorKind::NotFound => {
            create_dir_as_above(path.parent().unwrap_or(temp_dir))?;
            Ok(persist(error.file, path)?)
        }
        persisted => Ok(persisted?),
    }
}

/// Creates a directory and its missing parents, each with the mode of its parent, so that the same
/// users may write in it.
///
/// # Errors
/// The error of the file system.
pub fn create_dir_as_above(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        match fs::create_dir(dir) {
            // Another process created it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made?;
                let above = fs::metadata(dir.parent().unwrap_or(dir))?;
                // Some file systems have no modes.
                fs::set_permissions(dir, above.permissions()).ok();
            }
        }
    }
    Ok(())
}

/// Renames a temporary file to its final path.
fn persist(file: NamedTempFile, path: &Path) -> Result<(), PersistError> {
    let readable = fs::Permissions::from_mode(0o644);
    match file.as_file().set_permissions(readable) {
        Err(error) => Err(PersistError { error, file }),
        Ok(()) => file.persist(path).map(drop),
    }
}

/// Writes a file with a checksum: a digest, and the JSON that it covers.
///
/// # Errors
/// The error of the file system, or a path in the content that is no UTF-8.
pub fn write_sealed(file: &Path, content: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(content)?;
    write_atomic(file, &[Digest::of(&text).to_string().as_bytes(), &text])
}

/// The content of such a file; `None` if it is missing, damaged, or has another form.
pub fn read_sealed<T: DeserializeOwned>(file: &Path) -> Option<T> {
    let bytes = fs::read(file).ok()?;
    let (seal, text) = bytes.split_at_checked(SEAL)?;
    let whole = seal == Digest::of(text).to_string().as_bytes();
    if whole { serde_json::from_slice(text).ok() } else { None }
}

/// Records that a file of a cache was used, for eviction: by its modification time, to the hour. Returns whether the file exists.
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

/// Whether nothing exists at the path: it is missing, or its name is too long for the file system.
/// A compiler may get different errors for these.
pub fn is_not_found(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};

    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_directories_have_the_mode_of_their_parent() {
        let dir = tempfile::tempdir().unwrap();
        let (above, mode) = (dir.path().join("v"), 0o2775);
        fs::create_dir(&above).unwrap();
        fs::set_permissions(&above, fs::Permissions::from_mode(mode)).unwrap();
        write_atomic_by(&above.join("objects/ab/x"), &above, &[b"x"]).unwrap();
        for made in ["objects", "objects/ab"] {
            let found = fs::metadata(above.join(made)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(found, mode, "{made}");
        }
    }

    #[test]
    fn a_damaged_or_cut_file_reads_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b");
        let content = vec!["one".to_owned(), "two".to_owned()];
        let read = || read_sealed::<Vec<String>>(&file);
        assert_eq!(read(), None);
        write_sealed(&file, &content).unwrap();
        assert_eq!(read(), Some(content));
        assert_eq!(read_sealed::<u32>(&file), None);
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&file, &damaged).unwrap();
            assert_eq!(read(), None, "byte {at}");
            fs::write(&file, &whole[..at]).unwrap();
            assert_eq!(read(), None, "cut at {at}");
        }
    }
}
