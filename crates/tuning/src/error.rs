//! What can go wrong with tuning databases.

use std::io;
use std::path::PathBuf;

/// A record that no line could hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The key is empty, or has a separator or a control character in it.
    #[error(
        "failed to make a record of the key `{0}`: it is empty, or has `=` or a control character in it"
    )]
    Key(String),
    /// So has the solver's name, or the values.
    #[error(
        "failed to record `{values}` of `{solver}`: there is a separator or a control character in it"
    )]
    Values {
        /// The solver.
        solver: String,
        /// What was to be set.
        values: String,
    },
}

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
        match self {
            Self::Io { .. } => "check the path, and that this user may read it".to_owned(),
            Self::NotAFile(_) => "name the database's file".to_owned(),
            Self::Empty(_) => "fetch it again, or leave it out".to_owned(),
            Self::LfsPointer(_) => "fetch the file itself with `git lfs pull`".to_owned(),
            Self::Compressed { with, .. } => {
                let program = if *with == "gzip" { "gunzip" } else { "bunzip2" };
                format!("decompress it first with `{program}`: MIOpen reads it so only")
            }
            Self::OtherStorage { sqlite: true, .. } => {
                "SQLite databases are named .db or .udb, text .db.txt, .udb.txt, .fdb.txt or .ufdb.txt"
                    .to_owned()
            }
            Self::OtherStorage { .. } => {
                "text is named .db.txt, .udb.txt, .fdb.txt or .ufdb.txt".to_owned()
            }
            Self::Schema { .. } => {
                "it needs the tables config and perf_db, as MIOpen's own databases have them".to_owned()
            }
            Self::Sqlite { .. } => "fetch it again: it may be damaged".to_owned(),
        }
    }
}

/// Why a database could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
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

impl WriteError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        "check that the directory is there, and that there is room on that disk".to_owned()
    }
}
