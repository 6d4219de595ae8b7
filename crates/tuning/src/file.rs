//! Opens the files of databases, and recognises other files by their first
//! bytes.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::Path;

use crate::error::ReadError;
use crate::name::Storage;

/// The first bytes of files that are not MIOpen's text databases.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"BZh", "bzip2"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
];

/// Opens the file, positioned at its beginning, if it has this kind of storage.
///
/// # Errors
/// [`ReadError`], except for errors that only SQLite finds.
pub(crate) fn open(path: &Path, storage: Storage) -> Result<BufReader<File>, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    // Checked before opening: opening a pipe without a writer would block.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(ReadError::NotAFile(path.to_owned()));
    }
    let mut file = File::open(path).map_err(io)?;
    let mut first = Vec::new();
    (&mut file).take(64).read_to_end(&mut first).map_err(io)?;
    file.rewind().map_err(io)?;
    if first.is_empty() {
        return Err(ReadError::Empty(path.to_owned()));
    }
    if first.starts_with(LFS) {
        return Err(ReadError::LfsPointer(path.to_owned()));
    }
    if let Some((_, with)) = COMPRESSED.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Err(ReadError::Compressed { path: path.to_owned(), with });
    }
    let sqlite = first.starts_with(gfxpack_sqlite::MAGIC);
    if sqlite != (storage == Storage::Sqlite) {
        return Err(ReadError::OtherStorage { path: path.to_owned(), sqlite });
    }
    Ok(BufReader::with_capacity(1 << 16, file))
}
