//! What is verified, and what becomes of it.

use std::path::{Path, PathBuf};

use crate::finding::Finding;
use crate::read::PackageDescription;

/// A package, an index or a list of digests that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub subject: Subject,
    /// What is wrong with it; nothing where it is sound.
    pub findings: Vec<Finding>,
}

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A package.
    Package {
        /// Files in it.
        files: u64,
        /// What [`Inspected::entries`] of them come to.
        entries: u64,
    },
    /// A list of digests, with the files that it lists.
    Checksums,
    /// An index of a repository, with the packages that it lists.
    Index,
}

/// Looks into those files of a package whose format this crate does not know.
pub trait Inspector {
    /// Whether the file of that path in a package is looked into.
    fn is_wanted(&self, path: &str) -> bool;

    /// Looks into an unpacked copy, which has the name that the file has in
    /// the package.
    fn inspect(&mut self, copy: &Path) -> Inspected;

    /// What a package lacks that has these of the wanted files, a phrase.
    fn missing(&self, _about: &PackageDescription, _files: &[String]) -> Option<String> {
        None
    }
}

/// What was found in a file of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspected {
    /// What is wrong with it, a phrase each.
    pub findings: Vec<String>,
    /// How many entries it has.
    pub entries: u64,
}
