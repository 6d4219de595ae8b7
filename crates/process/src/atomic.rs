//! Files that are written whole or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Writes a file whole or not at all: a temporary file beside it, renamed
/// over it once every byte is there. Missing directories are made.
///
/// # Errors
/// What the file system says; the file is then as it was.
pub fn write_atomic(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    write_atomic_with(path, |out| parts.iter().try_for_each(|part| out.write_all(part)))
}

/// The same with what `write` writes.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_atomic_with(
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
///
/// # Errors
/// As [`write_atomic`].
pub fn write_atomic_by(path: &Path, temp_dir: &Path, parts: &[&[u8]]) -> io::Result<()> {
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
