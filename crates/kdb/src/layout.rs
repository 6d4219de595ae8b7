//! The two ways a kdb lays out its rows, in the words of SQL. MIOpen reads
//! both: it asks for the columns of `kern_db` and selects one row by its key.

use rusqlite::{Connection, OptionalExtension as _};

use crate::schema::{CREATE_INDEX, CREATE_TABLE, PAGE_SIZE, TABLE};

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

/// Pages of the dense layout, in bytes: less of each goes unused, and a code
/// object of 40 kB is 40 reads in place of 10, a fraction of what its
/// decompression takes.
pub(crate) const DENSE_PAGE_SIZE: u32 = 1024;

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

/// Keys whose object is not there, and objects that no key has.
pub(crate) const COUNT_STRAY: [(&str, &str); 2] = [
    (
        "SELECT count(*) FROM kern_keys WHERE object NOT IN (SELECT id FROM kern_objects)",
        "keys lead to an object that is not there",
    ),
    (
        "SELECT count(*) FROM kern_objects WHERE id NOT IN (SELECT object FROM kern_keys)",
        "objects belong to no key",
    ),
];

impl Layout {
    /// The layout's word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Miopen => "miopen",
            Self::Dense => "dense",
        }
    }

    pub(crate) fn page_size(self) -> u32 {
        match self {
            Self::Miopen => PAGE_SIZE,
            Self::Dense => DENSE_PAGE_SIZE,
        }
    }

    /// What makes an empty kdb. The texts are kept in the file, so they are
    /// part of the format. Indices exist before the rows: these come in the
    /// index's own order, so that it only grows at its end.
    pub(crate) fn statements(self) -> &'static [&'static str] {
        match self {
            Self::Miopen => &[CREATE_TABLE, CREATE_INDEX],
            Self::Dense => &[CREATE_OBJECTS, CREATE_KEYS, CREATE_VIEW],
        }
    }

    /// The layout of an open file; none for another view or table.
    pub(crate) fn of(connection: &Connection) -> Result<Option<Self>, rusqlite::Error> {
        let sql = |name: &str| {
            connection
                .query_row("SELECT type, sql FROM sqlite_schema WHERE name = ?1", [name], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
                })
                .optional()
        };
        Ok(match sql(TABLE)? {
            Some((kind, _)) if kind == "table" => Some(Self::Miopen),
            Some((_, Some(text))) if text == CREATE_VIEW => Some(Self::Dense),
            _ => None,
        })
    }
}
