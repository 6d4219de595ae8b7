//! The results of verification, and the interface to inspectors.

use std::path::{Path, PathBuf};

use crate::finding::Finding;
use crate::read::{PackageKind, Report};

/// A package, an index or a list of digests that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub subject: Subject,
    /// What is wrong with it; empty if it is sound.
    pub findings: Vec<Finding>,
}

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A package.
    Package {
        /// Number of files in it.
        files: u64,
        /// The sum of [`Inspected::entries`] of its files.
        entries: u64,
    },
    /// A list of digests, and the files that it lists.
    Checksums,
    /// An index of a repository, and the packages that it lists.
    Index,
}

/// Checks files in packages whose format this crate does not know.
pub trait Inspector {
    /// Whether the file with this path in a package is to be inspected.
    fn is_wanted(&self, path: &str) -> bool;

    /// Inspects an unpacked copy of a file. The copy has the file's name.
    fn inspect(&mut self, copy: &Path) -> Inspected;

    /// What a package that is read as `kind` lacks, and what it should not have, one phrase each.
    /// `report` has its description and its paths.
    fn flaws(&self, _kind: PackageKind, _report: &Report) -> Vec<String> {
        Vec::new()
    }
}

/// The result of inspecting a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspected {
    /// What is wrong with it, one phrase each.
    pub findings: Vec<String>,
    /// Number of entries in it.
    pub entries: u64,
}
