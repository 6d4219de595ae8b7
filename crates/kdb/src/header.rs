//! The first hundred bytes of an SQLite file, as far as a kdb cares.

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How a file says it is to be written, and by that read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Journal {
    /// A rollback journal (`journal_mode=DELETE`): what a kdb must have.
    Delete,
    /// A write-ahead log: readable only by who may write beside the file.
    Wal,
    /// A format version that no known SQLite writes.
    Unknown,
}

/// What the header of an SQLite file says.
///
/// Source: SQLite, "Database File Format", section 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Page size in bytes.
    pub page_size: u32,
    /// Journal mode, from the read and write format versions.
    pub journal: Journal,
    /// Version of the SQLite that wrote last: 3045001 for 3.45.1.
    pub sqlite_version: u32,
}

/// How the text of an SQLite file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    /// What the header states. SQLite looks at two bits alone, and takes none
    /// of them for UTF-8.
    pub(crate) fn of(header: &[u8; HEADER_BYTES]) -> Self {
        match header[59] & 3 {
            2 => Self::Utf16Le,
            3 => Self::Utf16Be,
            _ => Self::Utf8,
        }
    }

    /// SQLite's word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16le",
            Self::Utf16Be => "UTF-16be",
        }
    }

    /// The text that bytes are; none where they are none.
    pub(crate) fn text(self, bytes: &[u8]) -> Option<String> {
        let unit: fn([u8; 2]) -> u16 = match self {
            Self::Utf8 => return Some(std::str::from_utf8(bytes).ok()?.to_owned()),
            Self::Utf16Le => u16::from_le_bytes,
            Self::Utf16Be => u16::from_be_bytes,
        };
        let pairs = bytes.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return None;
        }
        let units: Vec<u16> = pairs.map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok()
    }
}

/// How many pages the file has, where its last writer said so: versions of
/// SQLite before 3.7 leave the number as it was.
pub(crate) fn page_count(header: &[u8; HEADER_BYTES]) -> Option<u32> {
    let field = |at| u32::from_be_bytes(std::array::from_fn(|index| header[at + index]));
    (header.starts_with(MAGIC) && field(24) == field(92)).then(|| field(28)).filter(|it| *it > 0)
}

impl Header {
    /// Reads the header; none where the magic is another's.
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
        let sqlite_version = u32::from_be_bytes([bytes[96], bytes[97], bytes[98], bytes[99]]);
        Some(Self { page_size, journal, sqlite_version })
    }
}

impl Journal {
    /// SQLite's word for the mode.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Wal => "wal",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_each_encoding() {
        let text = "naïve \u{1f300}";
        let units = || text.encode_utf16();
        let le: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        assert_eq!(Encoding::Utf8.text(text.as_bytes()).as_deref(), Some(text));
        assert_eq!(Encoding::Utf16Le.text(&le).as_deref(), Some(text));
        assert_eq!(Encoding::Utf16Be.text(&be).as_deref(), Some(text));
        assert_eq!(Encoding::Utf16Le.text(&le[..3]), None);
        assert_eq!(Encoding::Utf16Be.text(&[0xd8, 0]), None, "half a pair");
    }

    #[test]
    fn fields_stand_where_the_format_puts_them() {
        let mut bytes = [0; HEADER_BYTES];
        assert_eq!(Header::parse(&bytes), None);
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..20].copy_from_slice(&[0x10, 0x00, 1, 1]);
        bytes[96..].copy_from_slice(&3_045_001_u32.to_be_bytes());
        let expected =
            Header { page_size: 4096, journal: Journal::Delete, sqlite_version: 3_045_001 };
        assert_eq!(Header::parse(&bytes), Some(expected));
        bytes[16..20].copy_from_slice(&[0, 1, 2, 2]);
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.page_size, header.journal), (65536, Journal::Wal));
        bytes[18..20].copy_from_slice(&[3, 1]);
        assert_eq!(Header::parse(&bytes).unwrap().journal, Journal::Unknown);
    }
}
