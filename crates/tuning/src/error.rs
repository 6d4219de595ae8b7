//! What can go wrong with tuning databases.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_sqlite::NewFileError;

/// Why a database could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system does not let us.
    #[error("failed to read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A directory, a pipe or a device.
    #[error("failed to read `{0}`: it is no file")]
    NotAFile(PathBuf),
    /// No byte in it.
    #[error("failed to read `{0}`: it is empty")]
    Empty(PathBuf),
    /// What Git LFS leaves where the file itself was not fetched.
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
    /// SQLite where text is expected, or the other way round.
    #[error("failed to read `{path}`: it is {}", if *.sqlite { "SQLite, not text" } else { "no SQLite file" })]
    OtherStorage {
        /// The file.
        path: PathBuf,
        /// Whether it is SQLite.
        sqlite: bool,
    },
    /// The tables of a performance database are not there, or have other
    /// columns.
    #[error("failed to read `{path}`: {what}")]
    Schema {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// A program was stopped while it wrote, or is writing: what the file holds
    /// is not whole without its journal.
    #[error("failed to read `{path}`: `{journal}` has what a program did not finish to write")]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Its rollback journal.
        journal: PathBuf,
    },
    /// SQLite says no.
    #[error("failed to read `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
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

/// Why a database could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A log or journal beside the file that is there would be taken for the
    /// new one's, and damage it.
    #[error("failed to write `{path}`: `{beside}` belongs to the file that exists")]
    Pending {
        /// The file.
        path: PathBuf,
        /// The log or journal.
        beside: PathBuf,
    },
    /// The system does not let us.
    #[error("failed to write `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// SQLite says no.
    #[error("failed to write `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

impl From<NewFileError> for WriteError {
    fn from(error: NewFileError) -> Self {
        Self::Io { path: error.path, source: error.source }
    }
}

impl WriteError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Pending { path, .. } => {
                format!("{}; or choose another output", pending_hint(path))
            }
            Self::Io { .. } | Self::Sqlite { .. } => {
                "check that the directory is there, and that there is room on that disk".to_owned()
            }
        }
    }
}
