//! What a package contains, as a value: one spec, from which every archive
//! format is written.

use std::path::PathBuf;

/// One package, independent of its format.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What the relation says.
    pub kind: RelationKind,
    /// The other package.
    pub name: String,
    /// Operator (`=`, `<<`, `<=`, `>=`, `>>`) and version, if bounded.
    pub version: Option<(String, String)>,
}

/// The relations of Debian and rpm. Where only one of them knows a relation,
/// the other's writer leaves it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RelationKind {
    /// Must be installed too.
    Depends,
    /// Installed too unless the user says no.
    Recommends,
    /// Worth a look.
    Suggests,
    /// Makes the other more useful.
    Enhances,
    /// Stands in for the other's name.
    Provides,
    /// Can't be installed beside the other.
    Conflicts,
    /// Takes over the other's files (Debian only; rpm has `Obsoletes`).
    Replaces,
    /// Succeeds the other, which an upgrade removes (rpm only).
    Obsoletes,
    /// Is recommended by the other, which need not know of it (rpm only).
    Supplements,
}

/// One file of a package. Directories are implied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// Where it is installed: absolute, no `.` or `..`, no final slash.
    pub path: String,
    /// Where its bytes come from.
    pub content: Content,
    /// Permission bits, as `0o644`.
    pub mode: u32,
}

/// Where a file's bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file of the machine that builds, read as a stream.
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
