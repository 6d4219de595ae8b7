//! Files that are written whole or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, PersistError};

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
    Ok(persist(file.into_inner().map_err(io::IntoInnerError::into_error)?, path)?)
}

/// The same by way of a directory for temporary files on the same disk. Missing
/// directories are made as [`create_dir_as_above`] does.
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

/// Makes a directory and those that it lies in, where they are missing, each
/// with the mode of the one above it: whoever may write there may write here.
///
/// # Errors
/// What the file system says.
pub fn create_dir_as_above(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        match fs::create_dir(dir) {
            // By another process, meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made?;
                let above = fs::metadata(dir.parent().unwrap_or(dir))?;
                // Some file systems know no modes.
                fs::set_permissions(dir, above.permissions()).ok();
            }
        }
    }
    Ok(())
}

/// Puts a temporary file into its place.
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
    fn directories_of_a_group_are_made_for_the_group() {
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
