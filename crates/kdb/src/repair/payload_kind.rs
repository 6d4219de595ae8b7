//! Recognises rows of a kdb by the types of their columns.
//!
//! Source: SQLite, "Database File Format", section 2.1.

use crate::repair::page::{PageKind, varint};

/// Largest number of columns read; tables of a kdb have six at most.
const MAX_COLUMNS: usize = 32;

/// Position of a column in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// The column's bytes; `None` if the payload ends before them.
    pub(crate) fn slice(self, payload: &[u8]) -> Option<&[u8]> {
        payload.get(self.start..self.end)
    }

    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

/// Kind of a payload, by its shape alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadKind {
    /// A row of the table that MIOpen makes.
    Row { name: Span, args: Span, blob: Span, hash: Span, size: IntColumn },
    /// A blob of the dense layout.
    Object { blob: Span, size: IntColumn },
    /// A key of the dense layout.
    Key { name: Span, args: Span, hash: Span, object: IntColumn, check: Span },
    /// An entry of the unique index that MIOpen makes.
    RowInfo { name: Span, args: Span, row: IntColumn },
}

/// Position of an integer, or its constant value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntColumn {
    Stored(Span),
    Constant(i64),
}

#[derive(Debug, Clone, Copy)]
enum Column {
    Null,
    Int(IntColumn),
    Real,
    Blob(Span),
    Text(Span),
}

/// The shape of a payload of `size` bytes. `first` is the part in the cell's
/// own page; a kdb's record header always fits into it.
pub(crate) fn shape(kind: PageKind, first: &[u8], size: u64) -> Option<PayloadKind> {
    use Column::{Blob, Int, Null, Text};
    let columns = columns(first, size)?;
    match (kind, columns.as_slice()) {
        // Further columns, after MIOpen's, are allowed.
        (
            PageKind::TableLeaf,
            &[Null, Text(name), Text(args), Blob(blob), Text(hash), Int(size), ..],
        ) => Some(PayloadKind::Row { name, args, blob, hash, size }),
        (PageKind::TableLeaf, &[Null, Blob(blob), Int(size)]) => {
            Some(PayloadKind::Object { blob, size })
        }
        (
            PageKind::IndexLeaf | PageKind::IndexInterior,
            &[Text(name), Text(args), Blob(hash), Int(object), Blob(check)],
        ) if hash.len() == 16 && check.len() == 8 => {
            Some(PayloadKind::Key { name, args, hash, object, check })
        }
        (PageKind::IndexLeaf | PageKind::IndexInterior, &[Text(name), Text(args), Int(row)]) => {
            Some(PayloadKind::RowInfo { name, args, row })
        }
        _ => None,
    }
}

/// Type and position of every column; `None` unless they fill the payload
/// exactly.
fn columns(first: &[u8], size: u64) -> Option<Vec<Column>> {
    let mut at = 0;
    let header = varint(first, &mut at)?;
    if header > first.len() as u64 {
        return None;
    }
    let header = header as usize;
    let mut columns = Vec::new();
    let mut end = header as u64;
    while at < header {
        let code = varint(&first[..header], &mut at)?;
        let bytes = match code {
            0 | 8 | 9 => 0,
            1..=4 => code,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            more => (more - 12) / 2,
        };
        let start = end;
        end = end.checked_add(bytes).filter(|end| *end <= size)?;
        let place = Span { start: usize::try_from(start).ok()?, end: usize::try_from(end).ok()? };
        columns.push(match code {
            0 => Column::Null,
            1..=6 => Column::Int(IntColumn::Stored(place)),
            7 => Column::Real,
            8 => Column::Int(IntColumn::Constant(0)),
            9 => Column::Int(IntColumn::Constant(1)),
            even if even % 2 == 0 => Column::Blob(place),
            _ => Column::Text(place),
        });
        if columns.len() > MAX_COLUMNS {
            return None;
        }
    }
    (at == header && end == size).then_some(columns)
}

impl IntColumn {
    /// The number, big-endian and signed; `None` if the payload ends before it.
    pub(crate) fn read(&self, payload: &[u8]) -> Option<i64> {
        match self {
            Self::Constant(number) => Some(*number),
            Self::Stored(place) => {
                let bytes = place.slice(payload)?;
                let sign = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
                Some(bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_signed_and_big_endian() {
        let read = |bytes: &[u8]| {
            IntColumn::Stored(Span { start: 0, end: bytes.len() }).read(bytes).unwrap()
        };
        assert_eq!(read(&[0x01, 0x02]), 258);
        assert_eq!(read(&[0xff]), -1);
        assert_eq!(read(&[0xff, 0x7f, 0xff]), -32769);
        assert_eq!(read(&i64::MIN.to_be_bytes()), i64::MIN);
    }

    #[test]
    fn only_records_that_fill_their_payload_have_a_shape() {
        // Header of four bytes: NULL, a blob of one byte, the constant 0.
        let record = [4, 0, 14, 8, 0xab];
        let expected =
            PayloadKind::Object { blob: Span { start: 4, end: 5 }, size: IntColumn::Constant(0) };
        assert_eq!(shape(PageKind::TableLeaf, &record, 5), Some(expected));
        assert_eq!(shape(PageKind::TableLeaf, &record, 6), None, "a byte too many");
        assert_eq!(shape(PageKind::TableLeaf, &record, 4), None, "a byte too few");
        assert_eq!(shape(PageKind::IndexLeaf, &record, 5), None, "in an index");
        for cut in 0..4 {
            assert_eq!(shape(PageKind::TableLeaf, &record[..cut], 5), None, "cut at {cut}");
        }
    }
}
