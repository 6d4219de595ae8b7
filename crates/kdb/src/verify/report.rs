//! The report of a verification.

use std::collections::BTreeMap;
use std::fmt;

use gfxpack_model::{KernelKey, Target};

use crate::error::{JOURNAL_HINT, JOURNAL_MODE_HINT};

/// Number of findings that are listed; further ones are only counted.
const MAX_FINDINGS: usize = 1000;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingClass {
    /// Smaller than MIOpen reads.
    TooSmall,
    /// No SQLite 3 file.
    NotSqlite,
    /// Another journal mode than DELETE.
    JournalMode,
    /// A rollback journal beside the file must be played back first.
    Journal,
    /// SQLite's integrity check found damage.
    Integrity,
    /// The table, a column or the unique index is missing or different.
    Schema,
    /// SQLite could not continue; the rest was not checked.
    Unreadable,
    /// A column holds another type than declared, or text that is not UTF-8.
    Column,
    /// A key that MIOpen could never ask for.
    Key,
    /// The key's ` -mcpu=` is missing or names another device.
    Device,
    /// The blob does not decode to exactly `uncompressed_size` bytes.
    Blob,
    /// The hash is not 32 lower-case hexadecimal digits.
    HashForm,
    /// The hash is that of other bytes.
    Hash,
    /// The bytes are no code object.
    CodeObject,
    /// The code object is for another gfx target.
    Target,
}

impl FindingClass {
    /// The class in machine-readable output: `hash-form`.
    pub fn name(self) -> &'static str {
        match self {
            Self::TooSmall => "too-small",
            Self::NotSqlite => "not-sqlite",
            Self::JournalMode => "journal-mode",
            Self::Journal => "journal",
            Self::Integrity => "integrity",
            Self::Schema => "schema",
            Self::Unreadable => "unreadable",
            Self::Column => "column",
            Self::Key => "key",
            Self::Device => "device",
            Self::Blob => "blob",
            Self::HashForm => "hash-form",
            Self::Hash => "hash",
            Self::CodeObject => "code-object",
            Self::Target => "target",
        }
    }

    /// What the user can do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::JournalMode => JOURNAL_MODE_HINT,
            Self::Journal => JOURNAL_HINT,
            _ => "build the file again, or install its package again",
        }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of problem.
    pub class: FindingClass,
    /// The row it is in, counted from 1 in the order of the file; `None` for
    /// the file as a whole.
    pub row: Option<u64>,
    /// The row's key, cut to 16 KiB a part, with U+FFFD for what is not UTF-8.
    pub key: Option<KernelKey>,
    /// Description for people.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class.name(), self.detail)?;
        match (&self.row, &self.key) {
            (Some(row), Some(key)) => write!(f, " (row {row}, kernel `{key}`)"),
            (Some(row), None) => write!(f, " (row {row})"),
            _ => Ok(()),
        }
    }
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The target that the code objects were checked against, besides their own
    /// keys; `None` if neither the caller nor the file's name gave one.
    pub target: Option<Target>,
    /// Number of rows checked.
    pub rows: u64,
    /// Number of rows that are stored raw.
    pub raw_rows: u64,
    /// Bytes of all blobs as stored.
    pub stored_bytes: u64,
    /// Bytes of all code objects that decoded.
    pub object_bytes: u64,
    /// The work it took: bytes that were read of rows, and those that
    /// compressed code objects unpack to.
    pub work_bytes: u64,
    /// The problems: of the file first, then of the rows in order. At most
    /// 1000.
    pub findings: Vec<Finding>,
    /// Counts of all findings, listed or not.
    pub counts: BTreeMap<FindingClass, u64>,
}

impl Report {
    /// Whether there are no problems.
    pub fn is_sound(&self) -> bool {
        self.counts.is_empty()
    }

    /// Number of problems, including those not listed.
    pub fn total_findings(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        *self.counts.entry(finding.class).or_default() += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }
}
