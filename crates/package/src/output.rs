//! Writes files that appear when they are complete, and counts and hashes their
//! bytes.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, IntoInnerError, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use gfxpack_model::Result;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use sha2::{Digest, Sha256};
use tempfile::TempPath;

use crate::compress::{Compression, finish};
use crate::error::writing;

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file's path.
    pub path: PathBuf,
    /// The last part of the path.
    pub file_name: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of the contents, in lower-case hexadecimal.
    pub sha256: String,
}

/// A file being written, invisible until [`Output::commit`].
///
/// If it is dropped before that, nothing is left. If the file system supports it,
/// the file has no name until then, so that even a killed process leaves nothing.
pub(crate) struct Output {
    dir: PathBuf,
    file_name: String,
    file: File,
    /// Its present name, if the file system supports no file without one.
    named: Option<TempPath>,
    /// Bytes since writing to the disk was last started.
    unsynced: usize,
    storing: Option<JoinHandle<io::Result<()>>>,
}

/// After this number of bytes, writing to the disk is started.
const WRITE_BACK: usize = 32 << 20;

/// Permissions of a new file before the umask is applied.
const NEW_FILE: u32 = 0o666;

impl Output {
    /// Begins a file that will be `dir/file_name`.
    pub(crate) fn create(dir: &Path, file_name: &str) -> Result<Self> {
        let (file, named) = match unnamed(dir) {
            Some(file) => (file, None),
            None => {
                let permissions = std::fs::Permissions::from_mode(NEW_FILE);
                let named = tempfile::Builder::new().permissions(permissions).tempfile_in(dir);
                let (file, path) = named.map_err(writing(&dir.join(file_name)))?.into_parts();
                (file, Some(path))
            }
        };
        let (dir, file_name) = (dir.to_owned(), file_name.to_owned());
        Ok(Self { dir, file_name, file, named, unsynced: 0, storing: None })
    }

    /// A nameless file in the same directory, for data that must be complete
    /// before its place in the output is known.
    pub(crate) fn scratch(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.dir)
    }

    /// The path at which the file will appear.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(&self.file_name)
    }

    /// Writes the contents to the disk and gives the file its name, replacing an
    /// older one. That one is unchanged if it can't be stored.
    pub(crate) fn commit(mut self) -> Result<Written> {
        let path = self.path();
        let stored = self.store();
        let persisted = stored.and_then(|(sha256, size)| {
            let named = self.named.take().map_or_else(|| self.name(), Ok)?;
            named.persist(&path).map_err(|failed| failed.error)?;
            File::open(&self.dir)?.sync_all()?;
            Ok((sha256, size))
        });
        let (sha256, size) = persisted.map_err(writing(&path))?;
        Ok(Written { path, file_name: self.file_name, size, sha256 })
    }

    /// Writes all bytes to the disk, and returns their SHA-256 and their number. They are read back
    /// for it, since some formats write them out of order.
    fn store(&mut self) -> io::Result<(String, u64)> {
        self.wait_for_disk()?;
        let mut file = &self.file;
        file.rewind()?;
        let mut hashing = Hashing::new(io::sink());
        std::thread::scope(|scope| {
            let syncing = std::thread::Builder::new().spawn_scoped(scope, || file.sync_all())?;
            let hashed = io::copy(&mut BufReader::with_capacity(1 << 18, file), &mut hashing);
            syncing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            hashed
        })?;
        let (_, sha256, size) = hashing.finish();
        Ok((sha256, size))
    }

    /// Starts writing to the disk in the background, unless the previous such
    /// task is still running. The kernel would begin later.
    fn write_back(&mut self) -> io::Result<()> {
        if self.storing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        // An error is reported only once, so it must be handled here.
        self.wait_for_disk()?;
        let file = self.file.try_clone()?;
        self.storing = Some(std::thread::Builder::new().spawn(move || file.sync_data())?);
        Ok(())
    }

    /// Gives a nameless file a hidden name, from which it can be renamed.
    fn name(&self) -> io::Result<TempPath> {
        let source = descriptor_path(&self.file);
        let mut hidden = tempfile::Builder::new();
        let named = hidden.prefix(&format!(".{}.", self.file_name)).make_in(&self.dir, |hidden| {
            rustix::fs::linkat(CWD, &source, CWD, hidden, AtFlags::SYMLINK_FOLLOW)?;
            Ok(())
        });
        Ok(named?.into_temp_path())
    }

    fn wait_for_disk(&mut self) -> io::Result<()> {
        self.storing.take().map_or(Ok(()), |thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written;
        if self.unsynced >= WRITE_BACK {
            self.unsynced = 0;
            self.write_back()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// For archives whose headers are completed after later parts.
impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// A file without a name, if the file system and /proc allow naming it later.
fn unnamed(dir: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(NEW_FILE)).ok()?);
    std::fs::metadata(descriptor_path(&file)).is_ok().then_some(file)
}

fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A digest as lower-case hexadecimal.
pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes and counts the bytes that it passes on.
pub(crate) struct Hashing<W, D = Sha256> {
    inner: W,
    digest: D,
    size: u64,
}

impl<W> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self::with(inner, Sha256::new())
    }
}

impl<W, D: Digest> Hashing<W, D> {
    pub(crate) fn with(inner: W, digest: D) -> Self {
        Self { inner, digest, size: 0 }
    }

    /// The underlying writer, the digest in hexadecimal and the number of bytes.
    pub(crate) fn finish(self) -> (W, String, u64) {
        let (inner, digest, size) = self.finish_raw();
        (inner, hex(&digest), size)
    }

    /// Like [`Hashing::finish`], with the digest as bytes.
    pub(crate) fn finish_raw(self) -> (W, sha2::digest::Output<D>, u64) {
        (self.inner, self.digest.finalize(), self.size)
    }
}

impl<R: Read, D: Digest> Read for Hashing<R, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let filled = self.inner.read(buffer)?;
        self.digest.update(&buffer[..filled]);
        self.size += filled as u64;
        Ok(filled)
    }
}

impl<W: Write, D: Digest> Write for Hashing<W, D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// What was compressed, in a file without a name.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) file: File,
    pub(crate) size: u64,
    pub(crate) sha256: String,
    /// Of what it was before.
    pub(crate) plain_sha256: String,
}

impl Packed {
    /// Compresses what `write` writes.
    pub(crate) fn new<T>(
        output: &Output,
        compression: Option<Compression>,
        threads: usize,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        let mut packed = Hashing::new(BufWriter::new(output.scratch()?));
        let (written, plain) = match compression {
            None => (write(&mut packed)?, None),
            Some(compression) => {
                let mut out = Hashing::new(compression.encoder(&mut packed, threads)?);
                let written = write(&mut out)?;
                let (encoder, plain, _) = out.finish();
                finish(encoder)?;
                (written, Some(plain))
            }
        };
        let (buffered, sha256, size) = packed.finish();
        let mut file = buffered.into_inner().map_err(IntoInnerError::into_error)?;
        file.rewind()?;
        let plain_sha256 = plain.unwrap_or_else(|| sha256.clone());
        Ok((Self { file, size, sha256, plain_sha256 }, written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).expect("the directory lists");
        let name = |entry: io::Result<std::fs::DirEntry>| {
            entry.expect("the entry reads").file_name().to_string_lossy().into_owned()
        };
        entries.map(name).collect()
    }

    #[test]
    fn a_file_appears_whole_and_replaces_the_older_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("out");
        std::fs::write(&path, "older").expect("written");
        let mut output = Output::create(dir.path(), "out").expect("created");
        output.write_all(b"newer").expect("written");
        assert_eq!(std::fs::read(&path).expect("read"), b"older");
        let written = output.commit().expect("committed");
        assert_eq!(std::fs::read(&path).expect("read"), b"newer");
        assert_eq!(names(dir.path()), ["out"]);
        assert_eq!((written.size, written.file_name.as_str()), (5, "out"));
        assert_eq!(written.sha256, hex(&Sha256::digest(b"newer")));
    }

    #[test]
    fn a_file_system_without_nameless_files_works_as_well() {
        let dir = tempfile::tempdir().expect("a directory");
        let named = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(NEW_FILE))
            .tempfile_in(dir.path())
            .expect("created");
        let mut output = Output::create(dir.path(), "out").expect("created");
        let (file, path) = named.into_parts();
        (output.file, output.named) = (file, Some(path));
        output.write_all(b"bytes").expect("written");
        output.commit().expect("committed");
        assert_eq!(names(dir.path()), ["out"]);
        assert_eq!(std::fs::read(dir.path().join("out")).expect("read"), b"bytes");
    }

    #[test]
    fn an_output_that_is_not_committed_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut output = Output::create(dir.path(), "out").expect("created");
        output.write_all(b"half").expect("written");
        drop(output);
        assert!(names(dir.path()).is_empty());
        // A directory with that name makes the rename fail.
        std::fs::create_dir_all(dir.path().join("out/inside")).expect("created");
        let output = Output::create(dir.path(), "out").expect("created");
        assert!(output.commit().expect_err("no file").to_string().starts_with("failed to write `"));
        assert_eq!(names(dir.path()), ["out"]);
    }
}
