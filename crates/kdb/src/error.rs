//! What reading and writing a kdb can fail with, and what the user can do about it.

use std::io;
use std::path::PathBuf;

use gfxpack_model::{KernelKey, KeyError};

use crate::fault::Fault;
use crate::report::FindingClass;
use crate::schema::{MAX_KEY_BYTES, MAX_OBJECT_BYTES, MIN_FILE_BYTES};

/// Why a kdb, or a kernel in it, could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file system refuses: absent, no permission, a failing disk.
    #[error("failed to read kdb `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// A directory, pipe or device.
    #[error("failed to read kdb `{path}`: it is no regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Less than MIOpen looks at: a Git LFS pointer most likely.
    #[error("failed to read kdb `{path}`: {size} bytes are less than {MIN_FILE_BYTES}")]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        size: u64,
    },
    /// Another magic at the start.
    #[error("failed to read kdb `{path}`: it is no SQLite 3 file")]
    NotSqlite {
        /// The file.
        path: PathBuf,
    },
    /// Write-ahead logging: readable only by who may write beside it.
    #[error("failed to read kdb `{path}`: its journal mode is `{mode}`, not `delete`")]
    JournalMode {
        /// The file.
        path: PathBuf,
        /// SQLite's word for the mode found.
        mode: &'static str,
    },
    /// A file that can only be read from a copy, since another program has it
    /// open in WAL mode or it seems damaged, and is too large for one.
    #[error(
        "failed to read kdb `{path}`: its {size} bytes are too many to copy, the limit is {limit}"
    )]
    TooLargeToCopy {
        /// The file.
        path: PathBuf,
        /// Its bytes, with those of its log.
        size: u64,
        /// The limit in force.
        limit: u64,
    },
    /// Another program wrote to the file whenever it was copied.
    #[error("failed to read kdb `{path}`: it keeps changing")]
    KeepsChanging {
        /// The file.
        path: PathBuf,
    },
    /// Something failed that did not fail again: the file is whole.
    #[error("failed to read kdb `{path}`, which is whole at a second look")]
    Passing {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: Box<ReadError>,
    },
    /// A rollback journal that is still to be played back: the file itself
    /// holds half of what a program was writing.
    #[error("failed to read kdb `{path}`: `{journal}` has what a program did not finish to write")]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Its rollback journal.
        journal: PathBuf,
    },
    /// Text in UTF-16, so that the rows stand in another order than that of
    /// the keys' bytes.
    #[error("failed to read kdb `{path}` in order: its text is {encoding}, not UTF-8")]
    Encoding {
        /// The file.
        path: PathBuf,
        /// SQLite's word for the encoding found.
        encoding: &'static str,
    },
    /// The caller asked to stop.
    #[error("failed to read kdb `{path}` to its end: interrupted")]
    Interrupted {
        /// The file.
        path: PathBuf,
    },
    /// A program that wrote to it was killed, and its write must be undone
    /// before the file can be read: by one who may change it.
    #[error("failed to read kdb `{path}`: a write to it was cut short and is not undone yet")]
    HotJournal {
        /// The file.
        path: PathBuf,
    },
    /// The table or a column that MIOpen asks for is not there.
    #[error("failed to read kdb `{path}`: column `{column}` of kern_db is missing")]
    Schema {
        /// The file.
        path: PathBuf,
        /// The first column missing.
        column: &'static str,
    },
    /// More in the schema than tables and indices: a view or virtual table could
    /// compute anything, and no reader of kernels needs one.
    #[error("failed to read kdb `{path}`: its schema has `{statement}`, which is no plain table")]
    Statement {
        /// The file.
        path: PathBuf,
        /// The beginning of the statement.
        statement: String,
    },
    /// A table without the unique index that lookups go through, so that its
    /// rows can't be had in order.
    #[error("failed to read kdb `{path}`: kern_db has no unique index on its keys")]
    NoIndex {
        /// The file.
        path: PathBuf,
    },
    /// The index, or a view, gives keys out of order or twice.
    #[error("failed to read kdb `{path}` in order: kernel `{key}` does not stand in its place")]
    Order {
        /// The file.
        path: PathBuf,
        /// The key.
        key: Box<KernelKey>,
    },
    /// SQLite refuses: a damaged or hostile file.
    #[error("failed to read kdb `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// Rows without end, or with far more in them than a file of that size can
    /// hold: only a file made for that has such.
    #[error("failed to read kdb `{path}`: its rows have no end, or hold far more than it does")]
    Runaway {
        /// The file.
        path: PathBuf,
    },
    /// A row that is no kernel.
    #[error("failed to read kernel `{key}` of kdb `{path}`")]
    Row {
        /// The file.
        path: PathBuf,
        /// The row's key, as far as it could be read.
        key: Box<KernelKey>,
        /// What is wrong with it.
        source: RowError,
    },
}

impl ReadError {
    /// Whether the file is simply not there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } if self.is_absent() => {
                "check the path, or install the package that holds it"
            }
            Self::Io { source, .. } => hint_of(source),
            Self::NotAFile { .. } => "name the .kdb file itself",
            Self::TooSmall { .. } => {
                "a Git LFS pointer looks like this: run `git lfs pull`, or install the package again"
            }
            Self::NotSqlite { .. } => "check the download: the file holds something else",
            Self::JournalMode { .. } => FindingClass::JournalMode.hint(),
            Self::TooLargeToCopy { .. } => {
                "close the program that has it open, or take a smaller limit for the cache"
            }
            Self::KeepsChanging { .. } => "nothing need be done: it is looked into again",
            Self::Passing { .. } => "nothing need be done once; if it comes again, check the disk",
            Self::Unfinished { .. } => FindingClass::Journal.hint(),
            Self::Encoding { .. } => FindingClass::Encoding.hint(),
            Self::Interrupted { .. } => "run it again",
            Self::HotJournal { .. } => {
                "nothing need be done: the next program that uses it as its cache undoes the write"
            }
            Self::Schema { .. } => {
                "the file is no kernel database of MIOpen's, or a performance database: check its name"
            }
            Self::NoIndex { .. } => "`gfxpack kdb repair` writes its rows into a file that has one",
            // SQLite opens files of its own accord, and keeps the reason to itself.
            Self::Sqlite { source, .. }
                if source.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen) =>
            {
                "check the permissions of the file and its directory, and that the program may \
                 open more files (`ulimit -n`)"
            }
            Self::Sqlite { .. } if self.fault() == Fault::Denied => {
                "try again; if that changes nothing, check the system's memory and its disk"
            }
            Self::Sqlite { .. } if self.fault() == Fault::Busy => {
                "find the program that keeps it locked"
            }
            Self::Sqlite { .. } | Self::Row { .. } | Self::Order { .. } => {
                "`gfxpack kdb verify` lists all that is wrong, `gfxpack kdb repair` saves the rest; \
                 or build the file or install its package again"
            }
            Self::Statement { .. } => {
                "gfxpack reads tables, and no view but that of its dense layout: build the file \
                 again, or copy the rows into a table"
            }
            Self::Runaway { .. } => {
                "the file was made to do this: do not use it; if you trust it, allow for more \
                 with --max-object"
            }
        }
    }
}

/// What to do about a file that the system does not hand over.
fn hint_of(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        // The files may be a program's that asks for kernels, or named by hand.
        Some(Errno::MFILE | Errno::NFILE) => {
            "close some of the program's files, name fewer, or raise its limit (`ulimit -n`)"
        }
        Some(Errno::LOOP) => "check the symbolic links on the path: they lead in a circle",
        _ => "check the permissions of the file and of the directories above it",
    }
}

/// Why a stored row is no kernel.
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
    /// `uncompressed_size` is negative, or an object is larger than allowed.
    #[error("failed to accept a code object of {size} bytes: the limit is {limit}")]
    Size {
        /// Bytes as the row says.
        size: i64,
        /// The limit in force.
        limit: u64,
    },
    /// A large object of a small blob that is no code object.
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
    /// Rows before it have used up what the file's may unpack to in all.
    #[error(
        "failed to accept a code object of {size} bytes: the rows of a file of this size may \
         unpack to {limit} in all"
    )]
    Work {
        /// Bytes as the row says.
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
        /// `only`, or `at least` where decoding stopped at the bound.
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
    /// The bytes have another MD5.
    #[error("failed to match hash `{stored}`: the code object has `{computed}`")]
    HashMismatch {
        /// `kernel_hash`.
        stored: String,
        /// MD5 of the uncompressed bytes.
        computed: String,
    },
    /// The index leads to the row of another key.
    #[error("failed to reach the kernel: the index leads to `{0}`")]
    OtherKey(KernelKey),
    /// The key is listed, and its row can't be found.
    #[error("failed to reach the kernel: its key leads to no row")]
    Unreachable,
}

/// Why a kdb was not written. The destination is then as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A key that MIOpen could never find.
    #[error("failed to take a kernel into the kdb")]
    Key(#[from] KeyError),
    /// A key beyond [`MAX_KEY_BYTES`].
    #[error(
        "failed to take kernel `{name}`: its key has {size} bytes, the limit is {MAX_KEY_BYTES}"
    )]
    KeyTooLong {
        /// The kernel name's beginning.
        name: String,
        /// Bytes of name and arguments.
        size: usize,
    },
    /// The same key twice.
    #[error("failed to take kernel `{0}`: the key occurs twice")]
    Duplicate(Box<KernelKey>),
    /// A key before its predecessor.
    #[error("failed to take kernel `{key}`: it must stand before `{previous}`")]
    Order {
        /// The key.
        key: Box<KernelKey>,
        /// The one before it.
        previous: Box<KernelKey>,
    },
    /// The caller could not deliver a code object.
    #[error("failed to read the code object of kernel `{key}`")]
    Object {
        /// The key.
        key: Box<KernelKey>,
        /// What the caller said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A code object of no bytes, or beyond [`MAX_OBJECT_BYTES`].
    #[error(
        "failed to take kernel `{key}`: its code object has {size} bytes, not 1 to {MAX_OBJECT_BYTES}"
    )]
    ObjectSize {
        /// The key.
        key: Box<KernelKey>,
        /// Bytes of the code object.
        size: u64,
    },
    /// The file system refuses.
    #[error("failed to {action} kdb `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The destination.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// The file does not give back what was just written: it is damaged in a
    /// way that writing did not meet.
    #[error("failed to find kernel `{key}` in kdb `{path}` after it was written")]
    ReadBack {
        /// The file.
        path: PathBuf,
        /// The key.
        key: Box<KernelKey>,
    },
    /// SQLite refuses: most likely the disk is full.
    #[error("failed to write kdb `{path}`")]
    Sqlite {
        /// The destination.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

impl WriteError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Key(error) => error.hint(),
            Self::KeyTooLong { .. } => "check the kernel's arguments: no solver writes that many",
            Self::Duplicate(_) => "name every kernel once, with the same arguments byte for byte",
            Self::Order { .. } => "sort the keys by name and then by arguments, bytewise",
            Self::Object { .. } | Self::ObjectSize { .. } => {
                "build the kernel again; what the cache holds of it may be damaged"
            }
            Self::ReadBack { .. } => "remove the file: it is damaged",
            Self::Io { .. } | Self::Sqlite { .. } => {
                "check that the directory exists, may be written, and has room for the file"
            }
        }
    }
}

/// Why rows were not carried over into another kdb.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A file that is read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file that is written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A row whose key no kdb should have: MIOpen binds keys where it stores
    /// rows, and splices them in where it looks for them.
    #[error("failed to take over a kernel of kdb `{path}`")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with the key.
        source: WriteError,
    },
    /// An earlier split left parts that are none of this one's.
    #[error(
        "failed to leave nothing but these parts in `{dir}`: {} of an earlier split lie there: {}",
        .parts.len(), listed(.parts)
    )]
    OldParts {
        /// The directory of the parts.
        dir: PathBuf,
        /// What was there before, and is not of this split.
        parts: Vec<PathBuf>,
    },
    /// Two files have different code objects for one key.
    #[error("failed to merge kernel `{key}`: `{first}` and `{second}` differ in it")]
    Conflict {
        /// The key.
        key: Box<KernelKey>,
        /// A file that has it.
        first: PathBuf,
        /// Another one.
        second: PathBuf,
    },
}

impl CopyError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(error) => error.hint(),
            Self::Write(error) => error.hint(),
            Self::Key { .. } => {
                "`gfxpack kdb repair` writes the file without such rows, and lists them"
            }
            Self::OldParts { .. } => {
                "remove them: merging all that lies there would bring back what they hold"
            }
            Self::Conflict { .. } => {
                "--on-conflict first or newest says which to take; `gfxpack kdb diff` lists all"
            }
        }
    }
}

/// The first of some paths.
fn listed(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> =
        paths.iter().take(SHOWN).map(|path| format!("`{}`", path.display())).collect();
    if paths.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.join(", ")
}
