//! Errors of tuning databases.

use std::io;
use std::path::{Path, PathBuf};

/// Why a database could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system reports an error.
    #[error("failed to read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A directory, a pipe or a device.
    #[error("failed to read `{0}`: it is no file")]
    NotAFile(PathBuf),
    /// It has no bytes.
    #[error("failed to read `{0}`: it is empty")]
    Empty(PathBuf),
    /// A Git LFS pointer in place of a file that was not fetched.
    #[error("failed to read `{0}`: it is a pointer of Git LFS, not the file")]
    LfsPointer(PathBuf),
    /// Compressed, which MIOpen does not read.
    #[error("failed to read `{path}`: it is compressed with {with}")]
    Compressed {
        /// The file.
        path: PathBuf,
        /// `bzip2`.
        with: &'static str,
    },
    /// SQLite instead of text, or text instead of SQLite.
    #[error("failed to read `{path}`: it is {}", if *.sqlite { "SQLite, not text" } else { "no SQLite file" })]
    OtherStorage {
        /// The file.
        path: PathBuf,
        /// Whether it is SQLite.
        sqlite: bool,
    },
    /// The tables of a performance database are missing, or have other columns.
    #[error("failed to read `{path}`: {what}")]
    Schema {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// A program was stopped while it wrote, or is writing: without its journal
    /// the file is incomplete.
    #[error("failed to read `{path}`: `{journal}` has what a program did not finish to write")]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Its rollback journal.
        journal: PathBuf,
    },
    /// SQLite reports an error.
    #[error("failed to read `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl ReadError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let fixed = match self {
            Self::Io { .. } => "check the path, and that this user may read it",
            Self::NotAFile(_) => "name the database's file",
            Self::Empty(_) => "fetch it again, or leave it out",
            Self::LfsPointer(_) => "fetch the file itself with `git lfs pull`",
            Self::Compressed { with, .. } => {
                return format!("decompress it first with `{with} -d`: MIOpen reads it so only");
            }
            Self::OtherStorage { sqlite: true, .. } => {
                "SQLite databases are named .db or .udb, text .db.txt, .udb.txt, .fdb.txt or .ufdb.txt"
            }
            Self::OtherStorage { .. } => "text is named .db.txt, .udb.txt, .fdb.txt or .ufdb.txt",
            Self::Schema { .. } => {
                "it needs the tables config and perf_db, as MIOpen's own databases have them"
            }
            Self::Unfinished { path, .. } => return pending_hint(path),
            Self::Sqlite { .. } => "fetch it again: it may be damaged",
        };
        fixed.to_owned()
    }
}

/// What to do about a log or a journal of a database.
fn pending_hint(path: &Path) -> String {
    format!(
        "let the program that uses it end, then run \
         `sqlite3 {} 'pragma wal_checkpoint(truncate)'`",
        path.display()
    )
}

impl From<ReadError> for gfxpack_model::Error {
    fn from(error: ReadError) -> Self {
        let (kind, hint) = (gfxpack_model::ErrorKind::Usage, error.hint());
        Self::new(kind, &error, hint).caused_by(error)
    }
}
