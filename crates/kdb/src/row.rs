//! One row: its columns, with the types that the table declares but SQLite does
//! not enforce.

use gfxpack_model::KernelKey;
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};

use crate::error::RowError;
use crate::schema::MAX_OBJECT_BYTES;

/// A row without its code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowInfo {
    /// The key that MIOpen looks up.
    pub key: KernelKey,
    /// Bytes of the blob as stored.
    pub stored_bytes: u64,
    /// Bytes of the code object, as the row declares.
    pub object_bytes: u64,
    /// Whether the blob is a bzip2 stream.
    pub compressed: bool,
    /// MD5 of the code object, as the row declares.
    pub hash: String,
}

/// The key of a row.
pub(crate) fn key(row: &Row<'_>) -> Result<KernelKey, RowError> {
    let (name, args) = key_text(row)?;
    Ok(KernelKey { kernel_name: name.to_owned(), kernel_args: args.to_owned() })
}

/// Name and arguments of a row.
pub(crate) fn key_text<'a>(row: &'a Row<'_>) -> Result<(&'a str, &'a str), RowError> {
    Ok((text(row, 0, "kernel_name")?, text(row, 1, "kernel_args")?))
}

/// Parses a row with all columns but the blob.
pub(crate) fn row_info(row: &Row<'_>) -> Result<RowInfo, RowError> {
    let key = key(row)?;
    let bytes = |index, column| {
        let size = integer(row, index, column)?;
        let bytes = u64::try_from(size).ok().filter(|bytes| *bytes <= MAX_OBJECT_BYTES);
        bytes.ok_or(RowError::Size(size))
    };
    let stored_bytes = bytes(2, "kernel_blob")?;
    let uncompressed_size = bytes(4, "uncompressed_size")?;
    Ok(RowInfo {
        key,
        stored_bytes,
        object_bytes: if uncompressed_size == 0 { stored_bytes } else { uncompressed_size },
        compressed: uncompressed_size != 0,
        hash: text(row, 3, "kernel_hash")?.to_owned(),
    })
}

/// A key for error messages, whatever the columns hold.
pub(crate) fn shown_key(row: &Row<'_>) -> KernelKey {
    KernelKey { kernel_name: lossy_text(row, 0), kernel_args: lossy_text(row, 1) }
}

/// The text of a column.
pub(crate) fn text<'a>(
    row: &'a Row<'_>,
    index: usize,
    column: &'static str,
) -> Result<&'a str, RowError> {
    match value(row, index) {
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map_err(|_| RowError::NotUtf8 { column })
        }
        other => Err(mistyped(column, other)),
    }
}

/// `kernel_blob` of a row whose third column is the blob, or NULL if it exceeds
/// [`MAX_OBJECT_BYTES`], and whose sixth column is its size.
pub(crate) fn kernel_blob<'a>(row: &'a Row<'_>) -> Result<&'a [u8], RowError> {
    match (value(row, 2), value(row, 5)) {
        (ValueRef::Null, ValueRef::Integer(size)) => Err(RowError::Size(size)),
        (ValueRef::Blob(bytes), _) => Ok(bytes),
        (other, _) => Err(mistyped("kernel_blob", other)),
    }
}

/// The integer of a column.
pub(crate) fn integer(row: &Row<'_>, index: usize, column: &'static str) -> Result<i64, RowError> {
    match value(row, index) {
        ValueRef::Integer(number) => Ok(number),
        other => Err(mistyped(column, other)),
    }
}

/// The text of a column for display, whatever it holds.
fn lossy_text(row: &Row<'_>, index: usize) -> String {
    match value(row, index) {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SHOWN_BYTES)]).into_owned()
        }
        other => format!("({})", type_name(other)),
    }
}

/// Bytes of a key kept for display; real ones stay below 4 KiB.
pub(crate) const MAX_SHOWN_BYTES: usize = 16 << 10;

fn value<'a>(row: &'a Row<'_>, index: usize) -> ValueRef<'a> {
    row.get_ref(index).expect("an index of the statement's columns")
}

fn mistyped(column: &'static str, value: ValueRef<'_>) -> RowError {
    RowError::ColumnType { column, found: type_name(value) }
}

fn type_name(value: ValueRef<'_>) -> &'static str {
    match value.data_type() {
        Type::Null => "NULL",
        Type::Integer => "an integer",
        Type::Real => "a real number",
        Type::Text => "text",
        Type::Blob => "a blob",
    }
}
