//! Writes files completely or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, PersistError};

/// Writes a file completely or not at all: writes a temporary file beside it, then renames it.
/// Creates missing directories.
///
/// # Errors
/// The error of the file system; the file is then unchanged.
pub fn write_atomic(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    write_atomic_with(path, |out| parts.iter().try_for_each(|part| out.write_all(part)))
}

/// The same, with the content written by `write`.
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
    Ok(persist(file.into_inner().map_err(io::IntoInnerError::into_error)?, path)?)
}

/// The same, with the temporary file in a directory on the same disk. Missing directories are
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
}
