//! The two layouts of a kdb, as SQL statements. MIOpen reads both: it lists the
//! columns of `kern_db` and selects one row by its key.

use std::path::Path;

use rusqlite::Connection;

use crate::error::ReadError;
use crate::open::sqlite_error;
use crate::work_budget::WorkBudget;

/// How the rows of a kdb are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// One table with everything, as MIOpen itself creates it.
    #[default]
    Miopen,
    /// Each code object once, however many keys share it; each key's text once,
    /// while MIOpen's index repeats it; small pages. `kern_db` is a view.
    Dense,
}

/// One row for each stored blob. `blob` and `size` are the `kernel_blob` and
/// `uncompressed_size` of `kern_db`.
pub(crate) const CREATE_OBJECTS: &str = "CREATE TABLE kern_objects (\
    id INTEGER PRIMARY KEY, \
    blob BLOB NOT NULL, \
    size INT NOT NULL)";

/// Each key with the MD5 of its code object in 16 bytes, and with the beginning
/// of the MD5 of its own text. The hash is stored with the key: if a damaged
/// key leads to the wrong object, the hash does not match. If the text of a key
/// is damaged, its check does not match.
pub(crate) const CREATE_KEYS: &str = "CREATE TABLE kern_keys (\
    name TEXT NOT NULL, \
    args TEXT NOT NULL, \
    hash BLOB NOT NULL, \
    object INT NOT NULL, \
    key_check BLOB NOT NULL, \
    PRIMARY KEY (name, args)) WITHOUT ROWID";

/// The view that MIOpen selects from.
pub(crate) const CREATE_VIEW: &str = "CREATE VIEW kern_db AS SELECT \
    name AS kernel_name, \
    args AS kernel_args, \
    blob AS kernel_blob, \
    lower(hex(hash)) AS kernel_hash, \
    size AS uncompressed_size \
    FROM kern_keys JOIN kern_objects ON id = object";

impl Layout {
    /// The layout's name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Miopen => "miopen",
            Self::Dense => "dense",
        }
    }

    /// Detects the layout of an open file. The rows that are read count against
    /// `work`.
    ///
    /// Anything in the schema except tables, indices and the view of the dense
    /// layout is an error: a view or a virtual table can compute rows without
    /// end and of any size, but a table holds no more than the file. SQLite
    /// decides by the text what an entry is, and writes the text in the same
    /// form for each kind.
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
            // Automatic indices have no text.
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

/// How the text of a table or index begins: entries that only hold data.
const HOLDING: [&str; 3] = ["CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX "];

fn refused(path: &Path, statement: &str) -> ReadError {
    let statement = statement.chars().take(80).collect();
    ReadError::Statement { path: path.to_owned(), statement }
}
