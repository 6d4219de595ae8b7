//! The two ways a kdb lays out its rows, in the words of SQL. MIOpen reads
//! both: it asks for the columns of `kern_db` and selects one row by its key.

use std::path::Path;

use rusqlite::Connection;

use crate::error::ReadError;
use crate::open::sqlite_error;
use crate::work::WorkBudget;

/// How the rows of a kdb are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// One table with everything, as MIOpen itself makes it.
    #[default]
    Miopen,
    /// Code objects once, however many keys share them; each key's text once,
    /// where MIOpen's index repeats it; small pages. `kern_db` is a view.
    Dense,
}

/// Each stored blob. `blob` and `size` are `kern_db`'s `kernel_blob` and
/// `uncompressed_size`.
pub(crate) const CREATE_OBJECTS: &str = "CREATE TABLE kern_objects (\
    id INTEGER PRIMARY KEY, \
    blob BLOB NOT NULL, \
    size INT NOT NULL)";

/// Each key with the MD5 of its code object in 16 bytes, and with the beginning
/// of the MD5 of its own text. The hash stands with the key, so that a key that
/// leads to the wrong object has the wrong hash; a key whose text was damaged
/// does not match its own check.
pub(crate) const CREATE_KEYS: &str = "CREATE TABLE kern_keys (\
    name TEXT NOT NULL, \
    args TEXT NOT NULL, \
    hash BLOB NOT NULL, \
    object INT NOT NULL, \
    key_check BLOB NOT NULL, \
    PRIMARY KEY (name, args)) WITHOUT ROWID";

/// What MIOpen asks.
pub(crate) const CREATE_VIEW: &str = "CREATE VIEW kern_db AS SELECT \
    name AS kernel_name, \
    args AS kernel_args, \
    blob AS kernel_blob, \
    lower(hex(hash)) AS kernel_hash, \
    size AS uncompressed_size \
    FROM kern_keys JOIN kern_objects ON id = object";

impl Layout {
    /// The layout's word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Miopen => "miopen",
            Self::Dense => "dense",
        }
    }

    /// The layout of an open file that `work` is counted for.
    ///
    /// Anything in the schema but tables, indices and the view of the dense
    /// layout is an error: a view or a virtual table can compute rows, without
    /// an end and of any size, where a table has no more than the file. SQLite
    /// decides by the text what an entry is, and writes it so for each kind.
    ///
    /// Source: SQLite 3.54.1, `sqlite3InitCallback`, `sqlite3EndTable` and
    /// `sqlite3CreateIndex`.
    ///
    /// # Errors
    /// [`ReadError::Statement`], [`ReadError::Sqlite`], [`ReadError::Runaway`].
    pub(crate) fn detect(
        path: &Path,
        connection: &Connection,
        work: &WorkBudget,
    ) -> Result<Self, ReadError> {
        let sqlite = |source| sqlite_error(path, source);
        let mut statement = connection.prepare("SELECT sql FROM sqlite_schema").map_err(sqlite)?;
        let mut rows = statement.query(()).map_err(sqlite)?;
        let (mut has_view, mut tables) = (false, 0);
        while let Some(row) = rows.next().map_err(sqlite)? {
            work.row(path, row)?;
            // Indices that come with a table have no text.
            match row.get::<_, Option<String>>(0).map_err(sqlite)?.as_deref() {
                Some(CREATE_VIEW) => has_view = true,
                Some(CREATE_OBJECTS | CREATE_KEYS) => tables += 1,
                Some(text) if !HOLDING.iter().any(|kind| text.starts_with(kind)) => {
                    return Err(refused(path, text));
                }
                _ => {}
            }
        }
        match (has_view, tables) {
            (false, _) => Ok(Self::Miopen),
            (true, 2) => Ok(Self::Dense),
            (true, _) => Err(refused(path, CREATE_VIEW)),
        }
    }
}

/// How the texts of entries begin that hold what they give.
const HOLDING: [&str; 3] = ["CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX "];

fn refused(path: &Path, statement: &str) -> ReadError {
    let statement = statement.chars().take(80).collect();
    ReadError::Statement { path: path.to_owned(), statement }
}
