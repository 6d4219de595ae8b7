//! Reads packages back as a stranger would: every file in them, every digest
//! they promise.

mod archive;
mod deb;
mod rpm;
mod tarball;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

pub use rpm::Signed;

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
        let name = path.file_name()?.to_str()?;
        let ends = |ending: &str| name.ends_with(ending);
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
    let file = File::open(path).map_err(failed)?;
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

/// The text in a compressed file, whose codec its name's ending says.
///
/// # Errors
/// For a codec that is not known, and for damage.
pub fn unpacked_text(path: &Path, packed: &[u8]) -> io::Result<String> {
    let codec = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if codec == "xml" {
        return String::from_utf8(packed.to_vec()).map_err(io::Error::other);
    }
    let mut text = String::new();
    archive::unpacked(codec, packed)?.read_to_string(&mut text)?;
    Ok(text)
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
