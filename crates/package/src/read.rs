//! Reads packages back as a stranger would: every file in them, every digest
//! they promise.

mod archive;
mod deb;
mod rpm;
mod rpm_header;
mod tarball;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub use rpm::Signed;

/// The most that is read of an index, a signature or a file of keys, in bytes:
/// an index of all of Debian is 60 MB.
pub(crate) const INDEX_MAX: u64 = 256 << 20;

/// What a package is, by its file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `.deb`
    Deb,
    /// `.rpm`
    Rpm,
    /// `.tar.gz`, `.tar.xz`, `.tar.zst`
    Tar,
}

impl Kind {
    /// The kind that the name of a file says, if it says one.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.as_bytes();
        let ends = |ending: &str| name.ends_with(ending.as_bytes());
        if ends(".deb") {
            Some(Self::Deb)
        } else if ends(".rpm") {
            Some(Self::Rpm)
        } else if [".tar.gz", ".tgz", ".tar.xz", ".tar.zst"].into_iter().any(ends) {
            Some(Self::Tar)
        } else {
            None
        }
    }
}

/// Why a package could not be read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file can't be opened or read.
    #[error("failed to read `{path}`")]
    Io {
        /// The package.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Whoever looks at the files gave up.
    #[error("failed to look at the files of a package")]
    Visitor(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What was found out about a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Files in it.
    pub files: u64,
    /// What is wrong, a phrase each; nothing where it is sound.
    pub findings: Vec<String>,
    /// Links among them, by their paths: what they lead to is not shown
    /// again under their names.
    pub links: Vec<(String, String)>,
    /// The signed part of an .rpm with its signatures.
    pub signed: Option<Signed>,
}

/// Is shown every file of a package: its absolute path and its bytes, which
/// it need not read.
pub type Visitor<'a> =
    dyn FnMut(&str, &mut dyn Read) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Reads a package to its end. What is damaged is a finding.
///
/// # Errors
/// [`ReadError::Io`] where the disk does not let us, [`ReadError::Visitor`]
/// with what `visit` said.
pub fn check(path: &Path, kind: Kind, visit: &mut Visitor<'_>) -> Result<Report, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let file = open(path).map_err(failed)?;
    let mut report = Report::default();
    let mut outcome = Outcome { report: &mut report, visit };
    let file = BufReader::with_capacity(256 << 10, file);
    let ended = match kind {
        Kind::Deb => deb::check(file, &mut outcome),
        Kind::Rpm => rpm::check(file, &mut outcome),
        Kind::Tar => tarball::check(file, path, &mut outcome),
    };
    match ended {
        Ok(()) => {}
        Err(Stop::Damaged(what)) => report.findings.push(what),
        Err(Stop::Visitor(error)) => return Err(ReadError::Visitor(error)),
    }
    Ok(report)
}

/// Opens a file. What is none is refused before anything waits for it: a
/// named pipe for who writes to it, a device for what it may do.
///
/// # Errors
/// For what can't be opened or is no file.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

/// The bytes of a file that has no more than `max`.
///
/// # Errors
/// For what can't be read, is no file, or is larger.
pub fn bytes(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Limited::new(open(path)?, max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text in a compressed file, whose codec its name's ending says, if it
/// has no more than `max` bytes.
///
/// # Errors
/// For a codec that is not known, for damage, and for more text.
pub fn unpacked_text(path: &Path, packed: &[u8], max: u64) -> io::Result<String> {
    let codec = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if codec == "xml" {
        return String::from_utf8(packed.to_vec()).map_err(io::Error::other);
    }
    let mut text = String::new();
    archive::unpacked(codec, packed, max)?.read_to_string(&mut text)?;
    Ok(text)
}

/// A reader that fails where there is more than it may give.
struct Limited<R> {
    inner: R,
    max: u64,
    left: u64,
}

impl<R> Limited<R> {
    fn new(inner: R, max: u64) -> Self {
        Self { inner, max, left: max }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::other(format!("there are more than {} bytes", self.max))),
            };
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let filled = self.inner.read(&mut buffer[..most])?;
        self.left -= filled as u64;
        Ok(filled)
    }
}

/// Where findings go while a package is read.
struct Outcome<'a, 'v> {
    report: &'a mut Report,
    visit: &'a mut Visitor<'v>,
}

impl Outcome<'_, '_> {
    fn finding(&mut self, what: impl Into<String>) {
        self.report.findings.push(what.into());
    }

    /// Notes a link.
    fn link(&mut self, path: &str, target: &str) {
        self.report.files += 1;
        self.report.links.push((path.to_owned(), target.to_owned()));
    }

    /// Shows a file, and reads to its end what was not looked at.
    fn file(&mut self, path: &str, bytes: &mut dyn Read) -> Result<(), Stop> {
        self.report.files += 1;
        let mut bytes = Watched { inner: bytes, error: None };
        let visited = (self.visit)(path, &mut bytes);
        // Who looks at a file stumbles over its damage too.
        match (visited, &bytes.error) {
            (_, Some(error)) => return Err(damaged(path, error)),
            (Err(error), None) => return Err(Stop::Visitor(error)),
            (Ok(()), None) => {}
        }
        io::copy(&mut bytes, &mut io::sink()).map_err(|error| damaged(path, &error))?;
        Ok(())
    }
}

/// Why reading ends before the end.
enum Stop {
    Damaged(String),
    Visitor(Box<dyn std::error::Error + Send + Sync>),
}

fn damaged(what: &str, error: &dyn std::fmt::Display) -> Stop {
    Stop::Damaged(format!("failed to read `{what}`: {error}"))
}

/// A reader that remembers what went wrong.
struct Watched<'a> {
    inner: &'a mut dyn Read,
    error: Option<String>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.error = Some(error.to_string());
            }
        })
    }
}

/// A reader that hashes what goes through it.
struct Hashed<'a, R: ?Sized, D> {
    inner: &'a mut R,
    digest: D,
}

impl<R: Read + ?Sized, D: sha2::Digest> Read for Hashed<'_, R, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let filled = self.inner.read(buffer)?;
        self.digest.update(&buffer[..filled]);
        Ok(filled)
    }
}
