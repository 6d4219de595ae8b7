//! The result of reading a package, and the visitor of its files.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

/// The signed part of an .rpm: its header, which has the digests of all the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedHeader {
    /// The header's bytes.
    pub header: Vec<u8>,
    /// Detached OpenPGP signatures; empty if the package is not signed.
    pub signatures: Vec<Vec<u8>>,
}

/// How a package describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageDescription {
    /// Its name; for a tarball or an image, the file's name.
    pub name: String,
    /// Its one-line description; empty for a tarball or an image.
    pub summary: String,
    /// Names of its dependencies.
    pub depends: Vec<String>,
}

impl PackageDescription {
    /// Of a package that does not describe itself.
    pub(super) fn of_file(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, ..Self::default() }
    }
}

/// What was found in a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of files in it.
    pub files: u64,
    /// What is wrong, one phrase each; empty if the package is sound.
    pub findings: Vec<String>,
    /// Links among its files, which are not passed to the visitor.
    pub links: Vec<String>,
    /// Its files and links, by absolute path; in a wheel, below the directory of Python's packages.
    pub paths: BTreeSet<String>,
    /// How the package describes itself, if that can be read.
    pub about: Option<PackageDescription>,
    /// The signed part of an .rpm with its signatures.
    pub signed: Option<SignedHeader>,
}

/// Called for every file of a package with its absolute path and its bytes, which
/// it need not read.
pub type Visitor<'a> = dyn FnMut(&str, &mut dyn Read) -> gfxpack_model::Result + 'a;

/// Collects findings while a package is read.
pub(super) struct Outcome<'a, 'v> {
    pub(super) report: &'a mut Report,
    pub(super) visit: &'a mut Visitor<'v>,
}

impl Outcome<'_, '_> {
    pub(super) fn finding(&mut self, what: impl Into<String>) {
        self.report.findings.push(what.into());
    }

    /// Records a link.
    pub(super) fn link(&mut self, path: &str) {
        self.report.files += 1;
        self.report.paths.insert(path.to_owned());
        self.report.links.push(path.to_owned());
    }

    /// Reports a script that the package manager would run as root.
    pub(super) fn script(&mut self, name: &str) {
        self.finding(format!("its {name} would run as root"));
    }

    /// Reports a file that is run with the rights of its owner, or a file or directory that
    /// everybody may write to.
    pub(super) fn mode(&mut self, path: &str, mode: u64, is_directory: bool) {
        const SET_ID: u64 = 0o6000;
        const STICKY: u64 = 0o1000;
        const OTHERS_WRITE: u64 = 0o2;
        if mode & SET_ID != 0 && !is_directory {
            self.finding(format!("`{path}` runs with the rights of its owner"));
        }
        if mode & OTHERS_WRITE != 0 && !(is_directory && mode & STICKY != 0) {
            self.finding(format!("`{path}` may be written to by everybody"));
        }
    }

    /// Passes a file to the visitor, and reads the rest of it.
    pub(super) fn file(&mut self, path: &str, bytes: &mut dyn Read) -> Result<(), Stop> {
        self.report.files += 1;
        self.report.paths.insert(path.to_owned());
        let mut bytes = ErrorKeepingReader { inner: bytes, error: None };
        let visited = (self.visit)(path, &mut bytes);
        // If the visitor failed because the file is damaged, report the damage.
        match (visited, bytes.error.take()) {
            (_, Some(error)) => return Err(damaged(path, error)),
            (Err(error), None) => return Err(Stop::Visitor(error)),
            (Ok(()), None) => {}
        }
        io::copy(&mut bytes, &mut io::sink()).map_err(|error| damaged(path, error))?;
        Ok(())
    }
}

/// Why reading stops early.
pub(super) enum Stop {
    Damaged(String),
    Visitor(gfxpack_model::Error),
}

pub(super) fn damaged(what: &str, error: impl Into<io::Error>) -> Stop {
    // Of the end, each library has words of its own.
    let why = match error.into() {
        end if end.kind() == io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
        error => error.to_string(),
    };
    Stop::Damaged(format!("failed to read `{what}`: {why}"))
}

/// A reader that remembers its last error.
struct ErrorKeepingReader<'a> {
    inner: &'a mut dyn Read,
    error: Option<io::Error>,
}

impl Read for ErrorKeepingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.error = Some(io::Error::new(error.kind(), error.to_string()));
            }
        })
    }
}
