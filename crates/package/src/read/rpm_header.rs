//! The headers of an .rpm, held against rpm's own rules before the library
//! sees them, which believes what they say of themselves.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use super::outcome::{Stop, damaged};

/// Source: rpm 4.18, lib/header.c, `HEADER_TAGS_MAX`.
const ENTRIES_MAX: u32 = 0xffff;
/// Source: rpm 4.18, lib/header_internal.h, `HEADER_DATA_MAX`.
const DATA_MAX: u32 = 256 << 20;

const MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
const LEAD: u64 = 96;
const LEAD_MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
/// `RPMSIGTYPE_HEADERSIG`: the signatures stand in a header.
const HEADER_SIGNATURES: [u8; 2] = [0, 5];
const INTRO: usize = 16;
const ENTRY: usize = 16;

/// `RPMTAG_HEADERSIGNATURES` and `RPMTAG_HEADERIMMUTABLE`, whose data stand
/// at the end and tell how many entries were there when it was made.
const REGIONS: [u32; 2] = [62, 63];

/// Lead, signature header and header, as they stand in the file.
pub(super) struct Headers {
    pub(super) bytes: Vec<u8>,
    /// The header proper, which is what signatures are of.
    pub(super) main: Range<usize>,
}

/// Reads up to the payload.
///
/// Source: rpm 4.18, docs/manual/format_v4.md.
pub(super) fn read(file: &mut impl BufRead) -> Result<Headers, Stop> {
    let mut bytes = Vec::new();
    let failed = |error: io::Error| damaged("the header", &error);
    exactly(file, LEAD, &mut bytes).map_err(failed)?;
    lead(&bytes).map_err(failed)?;
    let data = one(file, &mut bytes).map_err(failed)?;
    exactly(file, u64::from(data.next_multiple_of(8) - data), &mut bytes).map_err(failed)?;
    let start = bytes.len();
    one(file, &mut bytes).map_err(failed)?;
    let main = start..bytes.len();
    Ok(Headers { bytes, main })
}

/// What rpm asks of the lead, whose other fields nobody reads.
///
/// Source: rpm 4.18, lib/rpmlead.c, `rpmLeadCheck`.
fn lead(bytes: &[u8]) -> io::Result<()> {
    let wrong = |what: String| Err(io::Error::other(what));
    if !bytes.starts_with(&LEAD_MAGIC) {
        return wrong("it begins with no known mark".to_owned());
    }
    if bytes[78..80] != HEADER_SIGNATURES {
        return wrong("its signatures are of no known type".to_owned());
    }
    match bytes[4] {
        3 | 4 => Ok(()),
        version => wrong(format!("its format is {version}, not 3 or 4")),
    }
}

/// Reads no more into memory than there is, whatever was promised.
fn exactly(file: &mut impl BufRead, size: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    if file.take(size).read_to_end(bytes)? as u64 == size {
        Ok(())
    } else {
        Err(io::Error::other("it is cut short"))
    }
}

/// Reads a header, and gives the size of its data.
fn one(file: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<u32> {
    let wrong = |what: &str| Err(io::Error::other(what.to_owned()));
    let start = bytes.len();
    exactly(file, INTRO as u64, bytes)?;
    let intro = &bytes[start..];
    if intro[..8] != MAGIC {
        return wrong("it begins with no known mark");
    }
    let (entries, data) = (number(intro, 8), number(intro, 12));
    if entries == 0 || entries > ENTRIES_MAX || data > DATA_MAX {
        return wrong("it is too large");
    }
    let table = start + INTRO..start + INTRO + entries as usize * ENTRY;
    exactly(file, table.len() as u64 + u64::from(data), bytes)?;
    let (index, data_bytes) = bytes[table.start..].split_at(table.len());
    if !is_sound(index, data_bytes) {
        return wrong("its index leads beyond its data");
    }
    Ok(data)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Whether every entry's data lie behind those of the one before, and within
/// what there is. So all of them together are no larger than the header.
///
/// Source: rpm 4.18, lib/header.c, `hdrblobVerifyInfo` and `dataLength`.
fn is_sound(index: &[u8], data: &[u8]) -> bool {
    let mut end = 0;
    index.chunks_exact(ENTRY).enumerate().all(|(position, entry)| {
        let (tag, kind) = (number(entry, 0), number(entry, 4));
        let (offset, count) = (number(entry, 8) as usize, number(entry, 12) as usize);
        let Some(size) = data.get(offset..).and_then(|data| length(kind, count, data)) else {
            return false;
        };
        if position == 0 && REGIONS.contains(&tag) {
            return kind == 7 && count == ENTRY;
        }
        let behind = offset >= end;
        end = offset + size;
        behind
    })
}

/// Bytes of `count` values of a type at the beginning of `data`; none where
/// these have fewer.
fn length(kind: u32, count: usize, data: &[u8]) -> Option<usize> {
    let size = match kind {
        1 | 2 | 7 => count,
        3 => count.checked_mul(2)?,
        4 => count.checked_mul(4)?,
        5 => count.checked_mul(8)?,
        6 if count != 1 => return None,
        6 | 8 | 9 => {
            let mut ends = data.iter().enumerate().filter(|(_, byte)| **byte == 0);
            ends.nth(count.checked_sub(1)?)?.0 + 1
        }
        _ => return None,
    };
    (count > 0 && size <= data.len()).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: &[[u32; 4]]) -> Vec<u8> {
        entries.iter().flatten().flat_map(|number| number.to_be_bytes()).collect()
    }

    #[test]
    fn an_index_stays_within_its_data() {
        let check = |entries: &[[u32; 4]], data: &[u8], expected| {
            assert_eq!(is_sound(&index(entries), data), expected, "{entries:?}");
        };
        let data = b"ab\0c\0\0\0\0\0\0\0\x01\0\0\0\x02";
        check(&[[1000, 6, 0, 1], [1001, 6, 3, 1], [1002, 4, 8, 2]], data, true);
        check(&[[1000, 8, 0, 2], [1002, 4, 8, 2]], data, true);
        check(&[[1000, 8, 0, 2], [1002, 2, 5, 11]], data, true);
        // Over each other, backwards, beyond, none, of no type, negative.
        check(&[[1000, 8, 0, 2], [1002, 4, 4, 2]], data, false);
        check(&[[1000, 7, 0, 8], [1001, 7, 7, 1]], data, false);
        check(&[[1000, 7, 4, 1], [1001, 7, 0, 1]], data, false);
        check(&[[1000, 4, 8, 3]], data, false);
        check(&[[1000, 5, 0, u32::MAX]], data, false);
        check(&[[1000, 4, 17, 1]], data, false);
        check(&[[1000, 4, 0x8000_0000, 1]], data, false);
        check(&[[1000, 4, 4, 0]], data, false);
        check(&[[1000, 0, 0, 1]], data, false);
        check(&[[1000, 10, 0, 1]], data, false);
        check(&[[1000, 6, 0, 2]], data, false);
        check(&[[1000, 8, 0, 13]], data, false);
        check(&[[1000, 6, 15, 1]], data, false);
        // A region's data are at the end, before all others.
        let region = [&data[..], &[0; 16]].concat();
        check(&[[63, 7, 16, 16], [1000, 6, 0, 1]], &region, true);
        check(&[[63, 7, 17, 16], [1000, 6, 0, 1]], &region, false);
        check(&[[63, 7, 0, 32], [1000, 6, 0, 1]], &region, false);
    }
}
