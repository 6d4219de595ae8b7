//! The first hundred bytes of an SQLite file, as far as they matter for a kdb.

use std::fmt;

use gfxpack_sqlite::MAGIC;

/// Size of the header.
pub(crate) const HEADER_BYTES: usize = 100;

/// The journal mode in a file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    /// A rollback journal (`journal_mode=DELETE`): required for a kdb.
    Delete,
    /// A write-ahead log: only a user who may write beside the file can read
    /// it.
    Wal,
    /// A format version that no known SQLite writes.
    Unknown,
}

/// The fields of an SQLite file's header.
///
/// Source: SQLite, "Database File Format", section 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Page size in bytes.
    pub page_size: u32,
    /// Journal mode, from the read and write format versions.
    pub journal: Journal,
    /// Version of the SQLite that wrote to the file last: 3045001 for 3.45.1.
    pub sqlite_version: u32,
    /// The MIOpen whose kernels these are, as gfxpack writes it into the user version.
    pub miopen_version: MiopenVersion,
}

/// A version of MIOpen, as 3004000 for 3.4.0; 0 is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MiopenVersion(pub u32);

impl MiopenVersion {
    /// The version in `3.4.0`, or in `3.3.0.2d1fd997a`; unknown for other text.
    pub fn of_text(text: &str) -> Self {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok().filter(|n| *n < 1000));
        let mut part = || parts.next().flatten();
        let mut number = || Some((part()? * 1000 + part()?) * 1000 + part()?);
        Self(number().unwrap_or_default())
    }

    /// Whether it is known.
    pub fn is_known(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for MiopenVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0 / 1_000_000, self.0 / 1000 % 1000, self.0 % 1000)
    }
}

/// Number of pages, if the last writer updated it: versions of SQLite before
/// 3.7 do not.
pub(crate) fn page_count(header: &[u8; HEADER_BYTES]) -> Option<u32> {
    let field = |at| u32::from_be_bytes(std::array::from_fn(|index| header[at + index]));
    (header.starts_with(MAGIC) && field(24) == field(92)).then(|| field(28)).filter(|it| *it > 0)
}

impl Header {
    /// Parses the header; `None` if the file does not begin as an SQLite file
    /// does.
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let page_size = match u16::from_be_bytes([bytes[16], bytes[17]]) {
            1 => 65536,
            size => u32::from(size),
        };
        let journal = match (bytes[18], bytes[19]) {
            (1, 1) => Journal::Delete,
            (2, _) | (_, 2) => Journal::Wal,
            _ => Journal::Unknown,
        };
        let number = |at| u32::from_be_bytes(std::array::from_fn(|index| bytes[at + index]));
        let (sqlite_version, miopen_version) = (number(96), MiopenVersion(number(60)));
        Some(Self { page_size, journal, sqlite_version, miopen_version })
    }
}

impl Journal {
    /// SQLite's name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Wal => "wal",
            Self::Unknown => "unknown",
        }
    }
}
