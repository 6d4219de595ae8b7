//! A row without its code object, and its key.

use gfxpack_model::KernelKey;

use crate::error::RowError;
use crate::row;

/// A row without its code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowInfo {
    /// What MIOpen asks for.
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
pub(crate) fn key(row: &rusqlite::Row<'_>) -> Result<KernelKey, RowError> {
    let (name, args) = key_text(row)?;
    Ok(KernelKey { kernel_name: name.to_owned(), kernel_args: args.to_owned() })
}

/// Name and arguments of a row.
pub(crate) fn key_text<'a>(row: &'a rusqlite::Row<'_>) -> Result<(&'a str, &'a str), RowError> {
    Ok((row::text(row, 0, "kernel_name")?, row::text(row, 1, "kernel_args")?))
}

/// The row of a query for all columns but the blob. No size may be above the
/// limit.
pub(crate) fn row_info(row: &rusqlite::Row<'_>, limit: u64) -> Result<RowInfo, RowError> {
    let key = key(row)?;
    let bytes = |index, column| {
        let size = row::integer(row, index, column)?;
        let bytes = u64::try_from(size).ok().filter(|bytes| *bytes <= limit);
        bytes.ok_or(RowError::Size { size, limit })
    };
    let stored_bytes = bytes(2, "kernel_blob")?;
    let uncompressed_size = bytes(4, "uncompressed_size")?;
    Ok(RowInfo {
        key,
        stored_bytes,
        object_bytes: if uncompressed_size == 0 { stored_bytes } else { uncompressed_size },
        compressed: uncompressed_size != 0,
        hash: row::text(row, 3, "kernel_hash")?.to_owned(),
    })
}

/// A key to name in an error, whatever the columns hold.
pub(crate) fn shown_key(row: &rusqlite::Row<'_>) -> KernelKey {
    KernelKey { kernel_name: row::lossy_text(row, 0), kernel_args: row::lossy_text(row, 1) }
}
