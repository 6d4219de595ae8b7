//! What is found out about a package while it is read, and who is shown its
//! files.

use std::io::{self, Read};

/// What signatures of an .rpm are over: its header, which holds the digests
/// of all the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The header's bytes.
    pub header: Vec<u8>,
    /// Detached OpenPGP signatures; none where the package is not signed.
    pub signatures: Vec<Vec<u8>>,
}

/// What a package says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageDescription {
    /// Its name; of a tarball, the file's.
    pub name: String,
    /// Its description in a line; empty for a tarball.
    pub summary: String,
    /// Names of what it depends on.
    pub depends: Vec<String>,
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
    /// What it says of itself, if that can be read.
    pub about: Option<PackageDescription>,
    /// The signed part of an .rpm with its signatures.
    pub signed: Option<Signed>,
}

/// Is shown every file of a package: its absolute path and its bytes, which
/// it need not read.
pub type Visitor<'a> =
    dyn FnMut(&str, &mut dyn Read) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Where findings go while a package is read.
pub(super) struct Outcome<'a, 'v> {
    pub(super) report: &'a mut Report,
    pub(super) visit: &'a mut Visitor<'v>,
}

impl Outcome<'_, '_> {
    pub(super) fn finding(&mut self, what: impl Into<String>) {
        self.report.findings.push(what.into());
    }

    /// Notes a link.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.report.files += 1;
        self.report.links.push((path.to_owned(), target.to_owned()));
    }

    /// Shows a file, and reads to its end what was not looked at.
    pub(super) fn file(&mut self, path: &str, bytes: &mut dyn Read) -> Result<(), Stop> {
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
pub(super) enum Stop {
    Damaged(String),
    Visitor(Box<dyn std::error::Error + Send + Sync>),
}

pub(super) fn damaged(what: &str, error: &dyn std::fmt::Display) -> Stop {
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
