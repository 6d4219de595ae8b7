//! The files behind databases: what they are by their first bytes, and how
//! one is written whole or not at all.

use std::fs::{File, Permissions};
use std::io::{self, BufReader, Read as _, Seek as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::{ReadError, WriteError};
use crate::name::Storage;

/// How files begin that are none of MIOpen's text databases.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"BZh", "bzip2"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
];

/// The file, from its beginning, if it is stored so.
///
/// # Errors
/// [`ReadError`], but for what SQLite would find.
pub(crate) fn open(path: &Path, storage: Storage) -> Result<BufReader<File>, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    // Asked before opening: a pipe without writer would block.
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

/// Who may do what with the file that is to be replaced, if there is one.
fn rights_of(path: &Path) -> Option<u32> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(metadata.permissions().mode() & 0o777)
}

/// A file beside its destination, which is removed unless it gets there.
pub(crate) fn beside(path: &Path) -> Result<NamedTempFile, WriteError> {
    let io = |source| WriteError::Io { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(io)?;
    let (Some(directory), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file")));
    };
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    // What any new file has, and the umask takes from; in place of a file, no
    // more than that has.
    let rights = rights_of(path);
    builder.permissions(Permissions::from_mode(rights.map_or(0o666, |mode| mode | 0o600)));
    builder.tempfile_in(directory).map_err(io)
}

/// Puts the file on disk and in its place.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> Result<(), WriteError> {
    let io = |source| WriteError::Io { path: path.to_owned(), source };
    if let Some(mode) = rights_of(path) {
        file.as_file().set_permissions(Permissions::from_mode(mode)).map_err(io)?;
    }
    file.as_file().sync_all().map_err(io)?;
    file.persist(path).map(drop).map_err(|error| io(error.error))
}
