//! The types of values in an .rpm's headers.
//!
//! Source: rpm 4.18, include/rpm/rpmtypes.h, `rpmTagType_e`; lib/header.c,
//! `typeSizes`, `typeAlign`.

pub(super) const CHAR: u32 = 1;
pub(super) const INT8: u32 = 2;
pub(super) const INT16: u32 = 3;
pub(super) const INT32: u32 = 4;
pub(super) const INT64: u32 = 5;
pub(super) const STRING: u32 = 6;
pub(super) const BIN: u32 = 7;
pub(super) const STRING_ARRAY: u32 = 8;
pub(super) const I18N_STRING: u32 = 9;

/// The alignment of values of a type, in bytes.
pub(super) fn alignment(kind: u32) -> usize {
    match kind {
        INT16 => 2,
        INT32 => 4,
        INT64 => 8,
        _ => 1,
    }
}

/// The length of `count` values of a type at the beginning of `data`, in bytes;
/// `None` if `data` is shorter, the type is unknown, or it can't have this count.
///
/// Source: rpm 4.18, lib/header.c, `dataLength`, `strtaglen`.
pub(super) fn length(kind: u32, count: usize, data: &[u8]) -> Option<usize> {
    let size = match kind {
        CHAR | INT8 | BIN => count,
        INT16 | INT32 | INT64 => count.checked_mul(alignment(kind))?,
        STRING if count != 1 => return None,
        STRING | STRING_ARRAY | I18N_STRING => {
            let mut ends = data.iter().enumerate().filter(|(_, byte)| **byte == 0);
            ends.nth(count.checked_sub(1)?)?.0 + 1
        }
        _ => return None,
    };
    (count > 0 && size <= data.len()).then_some(size)
}
