//! Errors of one row.

use std::io;

use gfxpack_model::KernelKey;

use crate::schema::MAX_OBJECT_BYTES;

/// Why a stored row is not a valid kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// A column holds a value of another type than the table declares.
    #[error("failed to read column `{column}`: it holds {found}")]
    ColumnType {
        /// The column.
        column: &'static str,
        /// SQLite's name of the type found.
        found: &'static str,
    },
    /// Text that is not UTF-8.
    #[error("failed to read column `{column}`: its text is not UTF-8")]
    NotUtf8 {
        /// The column.
        column: &'static str,
    },
    /// `uncompressed_size` is negative, or an object is larger than
    /// [`MAX_OBJECT_BYTES`].
    #[error("failed to accept a code object of {0} bytes: the limit is {MAX_OBJECT_BYTES}")]
    Size(i64),
    /// A small blob that declares a large object and does not begin as a code
    /// object.
    #[error(
        "failed to accept a code object of {declared} bytes in a blob of {stored}: it does not \
         begin as one"
    )]
    Filler {
        /// Bytes of the blob.
        stored: usize,
        /// `uncompressed_size`.
        declared: u64,
    },
    /// Earlier rows have used up what all rows of the file may unpack to.
    #[error(
        "failed to accept a code object of {size} bytes: the rows of a file of this size may \
         unpack to {limit} in all"
    )]
    Work {
        /// Size that the row declares.
        size: u64,
        /// The limit in force.
        limit: u64,
    },
    /// A code object of no bytes.
    #[error("failed to accept a code object of no bytes")]
    Empty,
    /// The blob is no bzip2 stream, or a damaged one.
    #[error("failed to decompress the blob")]
    Bzip2(#[source] io::Error),
    /// The blob decompresses to another length than `uncompressed_size`.
    #[error("failed to decompress the blob to {declared} bytes: it holds {relation} {actual}")]
    Length {
        /// `uncompressed_size`.
        declared: u64,
        /// `only`, or `at least` if decoding stopped at the bound.
        relation: &'static str,
        /// Bytes that came out.
        actual: u64,
    },
    /// Bytes after the end of the bzip2 stream.
    #[error("failed to accept the blob: {0} bytes follow its bzip2 stream")]
    Trailing(usize),
    /// A hash that is not 32 lower-case hexadecimal digits.
    #[error("failed to accept hash `{0}`: it is not 32 lower-case hexadecimal digits")]
    HashForm(String),
    /// The MD5 of the bytes is different.
    #[error("the hash differs: `{stored}` is stored, the code object has `{computed}`")]
    HashMismatch {
        /// `kernel_hash`.
        stored: String,
        /// MD5 of the uncompressed bytes.
        computed: String,
    },
    /// The index leads to the row of another key.
    #[error("failed to reach the kernel: the index leads to `{0}`")]
    OtherKey(KernelKey),
    /// The key is listed, but its row can't be found.
    #[error("failed to reach the kernel: its key leads to no row")]
    Unreachable,
}
