//! Reads the headers of an .rpm, and checks them against rpm's own rules before
//! the library gets them, which trusts their contents.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use super::outcome::{Stop, damaged};
use super::rpm_index::{ENTRY, Index, Role};

const MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
const LEAD: u64 = 96;
const LEAD_MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
/// `RPMSIGTYPE_HEADERSIG`: signatures are in a header.
const HEADER_SIGNATURES: [u8; 2] = [0, 5];
const INTRO: usize = 16;

/// Lead, signature header and main header, as in the file.
pub(super) struct Headers {
    pub(super) bytes: Vec<u8>,
    /// The signature header, with signatures and digests.
    pub(super) signatures: Range<usize>,
    /// The main header, which is what signatures cover.
    pub(super) main: Range<usize>,
}

impl Headers {
    /// The index of one of the headers, which [`read`] has checked.
    pub(super) fn index(&self, role: Role) -> Result<Index<'_>, Stop> {
        let header = match role {
            Role::Signatures => &self.bytes[self.signatures.clone()],
            Role::Main => &self.bytes[self.main.clone()],
        };
        parsed(role, header).map_err(|what| damaged("the header", &what))
    }
}

/// Reads everything before the payload.
///
/// Source: rpm 4.18, docs/manual/format_v4.md.
pub(super) fn read(file: &mut impl BufRead) -> Result<Headers, Stop> {
    let mut bytes = Vec::new();
    let failed = |error: io::Error| damaged("the header", &error);
    exactly(file, LEAD, &mut bytes).map_err(failed)?;
    lead(&bytes).map_err(failed)?;
    let start = bytes.len();
    one(file, Role::Signatures, &mut bytes)
        .map_err(|error| damaged("the header of signatures", &error))?;
    let signatures = start..bytes.len();
    let padding = signatures.len().next_multiple_of(8) - signatures.len();
    exactly(file, padding as u64, &mut bytes).map_err(failed)?;
    let start = bytes.len();
    one(file, Role::Main, &mut bytes).map_err(failed)?;
    let main = start..bytes.len();
    Ok(Headers { bytes, signatures, main })
}

/// Checks what rpm requires of the lead; its other fields are not used.
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

/// Reads `size` bytes without allocating more memory than there are bytes.
fn exactly(file: &mut impl BufRead, size: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    if file.take(size).read_to_end(bytes)? as u64 == size {
        Ok(())
    } else {
        Err(io::Error::other("it is cut short"))
    }
}

/// Maximum number of entries of a header, and of bytes of data.
///
/// Source: rpm 4.18, lib/header.c, `hdrblobVerifyLengths`.
fn limits(role: Role) -> (u32, u32) {
    match role {
        Role::Signatures => (32, 64 << 20),
        Role::Main => (0xffff, 0x0fff_ffff),
    }
}

/// Reads a header and checks it against rpm's rules.
fn one(file: &mut impl BufRead, role: Role, bytes: &mut Vec<u8>) -> io::Result<()> {
    let wrong = |what: &str| Err(io::Error::other(what.to_owned()));
    let start = bytes.len();
    exactly(file, INTRO as u64, bytes)?;
    let intro = &bytes[start..];
    if intro[..8] != MAGIC {
        return wrong("it begins with no known mark");
    }
    let (entries, data) = (number(intro, 8), number(intro, 12));
    let (entries_max, data_max) = limits(role);
    if entries == 0 || entries > entries_max || data > data_max {
        return wrong("it is too large, or has no entries");
    }
    exactly(file, u64::from(entries) * ENTRY as u64 + u64::from(data), bytes)?;
    parsed(role, &bytes[start..]).map_err(io::Error::other)?;
    Ok(())
}

fn parsed(role: Role, header: &[u8]) -> Result<Index<'_>, String> {
    let (table, data) = header[INTRO..].split_at(number(header, 8) as usize * ENTRY);
    Index::read(role, table, data)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
