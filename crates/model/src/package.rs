//! The content of a package as a value, from which every archive format is
//! written.

use std::path::PathBuf;

/// One package, independent of its format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageSpec {
    /// Package name: `miopen-hip-gfx90a-104kdb`.
    pub name: String,
    /// Upstream version: `1.0.0`.
    pub version: String,
    /// Debian revision and rpm release: `1`.
    pub revision: String,
    /// One line, no final dot, at most 79 columns.
    pub summary: String,
    /// Paragraphs of plain text, separated by an empty line; the writers wrap.
    pub description: String,
    /// SPDX licence expression of the contents.
    pub license: String,
    /// Home page, or empty.
    pub homepage: String,
    /// `Name <mail@example.org>`.
    pub maintainer: String,
    /// Debian section, as `libs`.
    pub section: String,
    /// Relations to other packages.
    pub relations: Vec<Relation>,
    /// More fields for the .deb's control file, in this order.
    pub deb_fields: Vec<(String, String)>,
    /// The contents, in any order; the writers sort by path.
    pub files: Vec<PackageFile>,
    /// Machine-readable copyright text (DEP-5), with final newline.
    pub copyright: String,
    /// Newest first, at least one.
    pub changelog: Vec<ChangelogEntry>,
    /// Seconds since the epoch: the time stamp of everything written.
    pub source_date_epoch: u64,
}

/// One relation to another package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The kind of relation.
    pub kind: RelationKind,
    /// The other package.
    pub name: String,
    /// Operator (`=`, `<<`, `<=`, `>=`, `>>`) and version, if bounded.
    pub version: Option<(String, String)>,
}

/// The relations of Debian and rpm. If only one of them supports a relation,
/// the writer of the other leaves it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RelationKind {
    /// Must be installed too.
    Depends,
    /// May be useful too.
    Suggests,
    /// Makes the other more useful.
    Enhances,
    /// Can be used in place of the other package.
    Provides,
    /// Can't be installed together with the other.
    Conflicts,
    /// Takes over the other's files (Debian only; rpm has `Obsoletes`).
    Replaces,
    /// Succeeds the other, which an upgrade removes (rpm only).
    Obsoletes,
    /// Recommended by the other, which need not know of it (rpm only).
    Supplements,
}

/// One file of a package. Directories are implied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// Installed path: absolute, no `.` or `..`, no final slash.
    pub path: String,
    /// The source of its bytes.
    pub content: Content,
    /// Permission bits, as `0o644`.
    pub mode: u32,
}

impl PackageFile {
    /// A file that all may read.
    pub fn readable(path: impl Into<String>, content: Content) -> Self {
        Self { path: path.into(), content, mode: 0o644 }
    }
}

/// The source of a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file on the building machine, read as a stream.
    File(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// One release in a package's changelog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangelogEntry {
    /// Upstream version and revision: `1.0.0-1`.
    pub version: String,
    /// Seconds since the epoch.
    pub date: u64,
    /// One line per change, without bullet.
    pub changes: Vec<String>,
}
