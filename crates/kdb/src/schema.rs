//! The table that MIOpen selects from, as SQL statements, the limits for all
//! files, and checks of a file's schema.

use std::path::Path;

use gfxpack_model::{Error, KernelKey, Result};
use rusqlite::Connection;

use crate::error::{Fault, ReadError};
use crate::open::{WorkBudget, sqlite_error};

/// MIOpen treats a smaller file as absent, since it assumes a Git LFS pointer.
///
/// Source: ROCm/MIOpen 2d1fd997a, `SQLite::impl::CreateFileDb`.
pub const MIN_FILE_BYTES: u64 = 512;

/// Largest code object that is written or read, 256 MiB. Those of MIOpen's
/// kernels stay below 32 MiB.
pub const MAX_OBJECT_BYTES: u64 = gfxpack_model::code_object::MAX_BYTES;

/// Largest key accepted, name and arguments together: 1 MiB. MIOpen splices
/// both into one SQL statement.
pub const MAX_KEY_BYTES: usize = 1 << 20;

/// Checks that MIOpen can find a key.
pub(crate) fn check_key(key: &KernelKey) -> Result {
    key.check_text().map_err(|error| {
        let message = "failed to take a kernel into the kdb";
        Error::internal(message, error.hint()).caused_by(error)
    })?;
    let size = key.kernel_name.len() + key.kernel_args.len();
    if size <= MAX_KEY_BYTES {
        return Ok(());
    }
    let name: String = key.kernel_name.chars().take(100).collect();
    Err(Error::internal(
        format!(
            "failed to take kernel `{name}`: its key has {size} bytes, the limit is {MAX_KEY_BYTES}"
        ),
        "check the kernel's arguments: no solver writes that many",
    ))
}

/// Checks that a code object has a size that can be stored.
pub(crate) fn check_object_size(key: &KernelKey, size: u64) -> Result {
    if (1..=MAX_OBJECT_BYTES).contains(&size) {
        return Ok(());
    }
    let what = format!("its code object has {size} bytes, not 1 to {MAX_OBJECT_BYTES}");
    Err(Error::internal(format!("failed to take kernel `{key}`: {what}"), OBJECT_HINT))
}

/// What to do about a code object that can't be stored.
pub(crate) const OBJECT_HINT: &str =
    "build the kernel again; what the cache holds of it may be damaged";

/// The table's name in MIOpen's queries.
///
/// Source: ROCm/MIOpen 2d1fd997a, `KernelConfig::table_name`.
pub(crate) const TABLE: &str = "kern_db";

/// The columns in order: name, declared type, NOT NULL. MIOpen checks that the name, args and blob columns
/// exist, and selects blob, hash and size.
///
/// Source: ROCm/MIOpen 2d1fd997a, `KernelConfig::CreateQuery`.
pub(crate) const COLUMNS: [(&str, &str, bool); 6] = [
    ("id", "INTEGER", false),
    ("kernel_name", "TEXT", true),
    ("kernel_args", "TEXT", true),
    ("kernel_blob", "BLOB", true),
    ("kernel_hash", "TEXT", true),
    ("uncompressed_size", "INT", true),
];

/// The columns of the unique index, in order.
pub(crate) const KEY_COLUMNS: [&str; 2] = ["kernel_name", "kernel_args"];

/// Creates the table. The file stores this text, so it is part of the format.
pub(crate) const CREATE_TABLE: &str = "CREATE TABLE kern_db (\
    id INTEGER PRIMARY KEY ASC, \
    kernel_name TEXT NOT NULL, \
    kernel_args TEXT NOT NULL, \
    kernel_blob BLOB NOT NULL, \
    kernel_hash TEXT NOT NULL, \
    uncompressed_size INT NOT NULL)";

/// Creates the unique index for lookups.
pub(crate) const CREATE_INDEX: &str =
    "CREATE UNIQUE INDEX idx_kern_db ON kern_db (kernel_name, kernel_args)";

/// Selects the stored row of one key. The key is read back from the row itself
/// and not from the index that led to it: an index entry with a flipped bit
/// leads to another kernel, whose own hash matches.
///
/// In this and the following statements, a blob above a limit is not read; its
/// size, from the row's own header, is returned instead. Text is compared
/// bytewise, whatever the table declares.
pub(crate) const SELECT_ONE: &str = "SELECT kernel_name, kernel_args, \
    CASE WHEN octet_length(kernel_blob) <= ?3 THEN kernel_blob END, \
    kernel_hash, uncompressed_size, octet_length(kernel_blob) FROM kern_db WHERE rowid = \
    (SELECT rowid FROM kern_db \
    WHERE kernel_name = ?1 COLLATE BINARY AND kernel_args = ?2 COLLATE BINARY)";

/// Selects every row as stored, in the order of the file.
pub(crate) const SELECT_ALL: &str = "SELECT kernel_name, kernel_args, \
    CASE WHEN octet_length(kernel_blob) <= ?1 THEN kernel_blob END, \
    kernel_hash, uncompressed_size, octet_length(kernel_blob) FROM kern_db";

/// Selects rows without their blobs; the caller appends the table.
pub(crate) const SELECT_ENTRIES: &str = "SELECT kernel_name, kernel_args, \
    octet_length(kernel_blob), kernel_hash, uncompressed_size FROM";

/// Selects keys only; the caller appends the table.
pub(crate) const SELECT_KEYS: &str = "SELECT kernel_name, kernel_args FROM";

/// Canonical order.
pub(crate) const IN_ORDER: &str = "ORDER BY kernel_name COLLATE BINARY, kernel_args COLLATE BINARY";

/// The columns of the table: name, declared type, NOT NULL.
pub(crate) fn columns(
    connection: &Connection,
) -> Result<Vec<(String, String, bool)>, rusqlite::Error> {
    let mut statement = connection.prepare(&format!("PRAGMA table_info({TABLE})"))?;
    let column =
        |row: &rusqlite::Row<'_>| Ok((row.get("name")?, row.get("type")?, row.get("notnull")?));
    statement.query_map((), column)?.collect()
}

/// The first column that MIOpen needs and the table does not have.
///
/// Source: ROCm/MIOpen 2d1fd997a, `SQLiteBase::CheckTableColumns` and
/// `KernDb::FindRecordUnsafe`.
pub(crate) fn missing_column(
    connection: &Connection,
) -> Result<Option<&'static str>, rusqlite::Error> {
    let there = columns(connection)?;
    let needed = COLUMNS.iter().map(|(name, ..)| *name).filter(|name| *name != "id");
    Ok({ needed }.find(|name| !there.iter().any(|(found, ..)| found == name)))
}

/// The unique index of the whole table on exactly the key, compared bytewise;
/// it must lead to row ids.
pub(crate) fn key_index(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    let mut statement = connection.prepare(
        "SELECT list.name, group_concat(info.name ORDER BY info.seqno) \
         FROM pragma_index_list(?1) AS list, pragma_index_xinfo(list.name) AS info \
         WHERE list.\"unique\" AND NOT list.partial AND info.key \
         AND EXISTS (SELECT 1 FROM pragma_table_list(?1) WHERE schema = 'main' AND NOT wr) \
         GROUP BY list.name HAVING min(upper(info.coll) = 'BINARY' AND NOT info.\"desc\")",
    )?;
    let mut rows = statement.query([TABLE])?;
    let wanted = KEY_COLUMNS.join(",");
    while let Some(row) = rows.next()? {
        if row.get::<_, Option<String>>(1)?.is_some_and(|columns| columns == wanted) {
            return row.get(0).map(Some);
        }
    }
    Ok(None)
}

/// How the text of a table or index begins: entries that only hold data.
const HOLDING: [&str; 3] = ["CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX "];

/// Checks that a file's schema has nothing but tables and indices: a view or a
/// virtual table can compute rows without end and of any size, but a table holds
/// no more than the file. SQLite decides by the text what an entry is, and
/// writes the text in the same form for each kind. The rows that are read count
/// against `work`.
///
/// Source: SQLite 3.54.1, `sqlite3InitCallback`, `sqlite3EndTable` and
/// `sqlite3CreateIndex`.
pub(crate) fn check_statements(
    path: &Path,
    connection: &Connection,
    work: &WorkBudget,
) -> Result<(), ReadError> {
    let sqlite = |source| sqlite_error(path, source);
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema").map_err(sqlite)?;
    let mut rows = statement.query(()).map_err(sqlite)?;
    while let Some(row) = rows.next().map_err(sqlite)? {
        work.row(path, row)?;
        // Automatic indices have no text.
        let text: Option<String> = row.get(0).map_err(sqlite)?;
        if let Some(text) = text.filter(|text| !HOLDING.iter().any(|kind| text.starts_with(kind))) {
            let statement = text.chars().take(80).collect();
            return Err(Fault::Statement(statement).of(path));
        }
    }
    Ok(())
}
