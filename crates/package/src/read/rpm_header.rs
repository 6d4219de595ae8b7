//! Reads the headers of an .rpm.

use std::io::{self, BufRead, Read};

use ::rpm::IndexTag;

/// Magic, version and four reserved bytes, before the numbers of entries and of
/// bytes of data.
const MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
const INTRO: usize = 16;
const ENTRY: usize = 16;

/// Maximum number of entries of a header, and of bytes of data.
///
/// Source: rpm 4.18, lib/header.c, `hdrblobVerifyLengths`.
const ENTRIES_MAX: usize = 0xffff;
const DATA_MAX: usize = 0x0fff_ffff;

/// A header: values by tag.
pub(super) struct Header {
    /// As in the file, which is what signatures cover.
    pub(super) bytes: Vec<u8>,
    /// Where the data begin.
    data: usize,
}

impl Header {
    /// Reads a header.
    ///
    /// Source: rpm 4.18, docs/manual/format_v4.md.
    pub(super) fn read(file: &mut impl BufRead) -> io::Result<Self> {
        let mut bytes = Vec::new();
        exactly(file, INTRO, &mut bytes)?;
        let (entries, data) = (number(&bytes, 8), number(&bytes, 12));
        if bytes[..8] != MAGIC || entries > ENTRIES_MAX || data > DATA_MAX {
            return Err(io::Error::other("it begins with no known mark, or is too large"));
        }
        exactly(file, entries * ENTRY + data, &mut bytes)?;
        Ok(Self { bytes, data: INTRO + entries * ENTRY })
    }

    /// The type of a tag's values, their number, and the data from their first byte
    /// on.
    fn value(&self, tag: u32) -> Option<(usize, usize, &[u8])> {
        let (index, data) = self.bytes.split_at(self.data);
        let mut entries = index[INTRO..].chunks_exact(ENTRY);
        let entry = entries.find(|entry| number(entry, 0) == tag as usize)?;
        Some((number(entry, 4), number(entry, 12), data.get(number(entry, 8)..)?))
    }

    /// Whether the values of all tags begin among the data, and may be there in their number.
    pub(super) fn is_sound(&self) -> bool {
        let (index, data) = self.bytes.split_at(self.data);
        let mut entries = index[INTRO..].chunks_exact(ENTRY);
        entries.all(|entry| {
            let left = data.len().checked_sub(number(entry, 8));
            left.is_some_and(|left| number(entry, 12) <= left)
        })
    }

    pub(super) fn has(&self, tag: u32) -> bool {
        self.value(tag).is_some()
    }

    /// The values of a tag, if it has texts.
    pub(super) fn texts(&self, tag: IndexTag) -> Vec<String> {
        let Some((6 | 8 | 9, count, data)) = self.value(tag as u32) else { return Vec::new() };
        let texts = data.split(|byte| *byte == 0).take(count);
        texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    pub(super) fn text(&self, tag: IndexTag) -> String {
        self.texts(tag).into_iter().next().unwrap_or_default()
    }

    /// The values of a tag, if it has numbers of 16, 32 or 64 bits.
    pub(super) fn numbers(&self, tag: IndexTag) -> Vec<u64> {
        let Some((kind @ 3..=5, count, data)) = self.value(tag as u32) else { return Vec::new() };
        let values = data.chunks_exact(1 << (kind - 2)).take(count);
        values.map(|bytes| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte))).collect()
    }

    /// The value of a tag, if it has bytes.
    pub(super) fn binary(&self, tag: IndexTag) -> Option<&[u8]> {
        let (7, count, data) = self.value(tag as u32)? else { return None };
        data.get(..count)
    }
}

/// Reads `size` bytes without allocating more memory than there are bytes.
pub(super) fn exactly(file: &mut impl BufRead, size: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    if file.take(size as u64).read_to_end(bytes)? == size {
        Ok(())
    } else {
        Err(io::Error::other("it is cut short"))
    }
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
}
