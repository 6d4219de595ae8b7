//! A file of messages for machines, written besides the text for people.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::error::{self, Result};

/// A file of JSON lines. Each is written at once, so that it is there even if the
/// build is killed. Any thread may write.
#[derive(Debug)]
pub struct MessageFile {
    path: PathBuf,
    /// The file, and the first error, after which nothing more is written.
    state: Mutex<(File, Option<io::Error>)>,
}

impl MessageFile {
    /// Creates or empties the file.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|error| {
            error::usage(
                format!("failed to write `{}`: {error}", path.display()),
                "name a file in a directory that is there",
            )
        })?;
        Ok(Self { path: path.to_owned(), state: Mutex::new((file, None)) })
    }

    /// Writes a line. If that fails, [`MessageFile::finish`] returns the error.
    pub fn line(&self, line: &impl Serialize) {
        let (file, broken) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if broken.is_some() {
            return;
        }
        *broken = write_line(file, line).err();
    }

    /// Checks that every line was written.
    ///
    /// # Errors
    /// The first write error; later calls do not return it again.
    pub fn finish(&self) -> Result<()> {
        let broken = self.state.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        broken.map_or(Ok(()), |error| Err(error::io("write", &self.path)(error)))
    }
}

/// Serializes a line directly to `out`: the one for a plan with many jobs takes
/// hundreds of megabytes.
///
/// # Errors
/// If it can't be written.
pub fn write_line(out: impl io::Write, line: &impl Serialize) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_there_at_once_and_a_full_disk_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("messages.jsonl");
        std::fs::write(&path, "of an earlier run").unwrap();
        let file = MessageFile::create(&path).unwrap();
        file.line(&1);
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n");
        file.line(&"two");
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n\"two\"\n");
        assert!(file.finish().is_ok());

        let full = MessageFile::create(Path::new("/dev/full")).unwrap();
        full.line(&1);
        full.line(&2);
        assert!(full.finish().unwrap_err().to_string().contains("`/dev/full`"));
        assert!(MessageFile::create(dir.path()).is_err());
    }
}
