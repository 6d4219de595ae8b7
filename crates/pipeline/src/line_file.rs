//! A file of JSON lines that is put in place when it is complete.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::{NamedTempFile, TempPath};

use crate::destination::Destination;
use crate::error::{self, Result};

/// A file of JSON lines that is put in place when it is complete. A device or a
/// pipe gets each line at once.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// The file to be put in place; `None` for a device or a pipe.
    temporary: Option<TempPath>,
}

impl LineFile {
    /// Begins the file. An existing file stays until [`LineFile::finish`].
    ///
    /// # Errors
    /// If the directory can't be written to.
    pub fn create(path: &Path) -> Result<Self> {
        let open = || match Destination::follow(path)? {
            Destination::File(path) => {
                std::fs::create_dir_all(directory_of(&path))?;
                let (file, temporary) = NamedTempFile::new_in(directory_of(&path))?.into_parts();
                Ok((path, file, Some(temporary)))
            }
            Destination::Stream(file) => Ok((path.to_owned(), file, None)),
        };
        let (path, file, temporary) = open().map_err(error::io("write", path))?;
        Ok(Self { path, out: BufWriter::new(file), temporary })
    }

    /// Writes a file with these lines.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(path: &Path, lines: &[impl Serialize]) -> Result<()> {
        let mut file = Self::create(path)?;
        lines.iter().try_for_each(|line| file.line(line))?;
        file.finish()
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn line(&mut self, line: &impl Serialize) -> Result<()> {
        let mut put = || -> io::Result<()> {
            serde_json::to_writer(&mut self.out, line)?;
            self.out.write_all(b"\n")
        };
        put().map_err(error::io("write", &self.path))
    }

    /// Puts the file in place, readable for everybody.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn finish(self) -> Result<()> {
        let Self { path, out, temporary } = self;
        let persist = || -> io::Result<()> {
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            let Some(temporary) = temporary else { return Ok(()) };
            file.set_permissions(Permissions::from_mode(0o644))?;
            temporary.persist(&path).map_err(|error| error.error)
        };
        persist().map_err(error::io("write", &path))
    }
}

/// The directory that a file lies in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_appears_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.jsonl");
        std::fs::write(&path, "before").unwrap();
        let mut file = LineFile::create(&path).unwrap();
        file.line(&1).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        file.line(&"two").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n\"two\"\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);

        drop(LineFile::create(&dir.path().join("other")).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
        assert_eq!(directory_of(Path::new("keys.jsonl")), Path::new("."));
    }
}
