//! The text encoding of an SQLite file: UTF-8 or UTF-16.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::ReadError;
use crate::header::HEADER_BYTES;

/// How the text of an SQLite file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    /// The encoding of the file's text.
    ///
    /// # Errors
    /// [`ReadError::Io`].
    pub(crate) fn read(path: &Path) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        let mut bytes = [0; HEADER_BYTES];
        File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).map_err(io)?;
        Ok(Self::from_header(&bytes))
    }

    /// The encoding in the header. SQLite looks at two bits only, and takes
    /// zero for UTF-8.
    pub(crate) fn from_header(header: &[u8; HEADER_BYTES]) -> Self {
        match header[59] & 3 {
            2 => Self::Utf16Le,
            3 => Self::Utf16Be,
            _ => Self::Utf8,
        }
    }

    /// SQLite's name of the encoding.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16le",
            Self::Utf16Be => "UTF-16be",
        }
    }

    /// Decodes text; `None` if the bytes are not valid.
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
}
