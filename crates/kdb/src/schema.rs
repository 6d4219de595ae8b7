//! The table that MIOpen selects from, as SQL statements, the limits for all
//! files, and checks of a file's schema.

use rusqlite::Connection;

/// Page size of a written file, in bytes: SQLite's default, which every reader
/// expects.
pub const PAGE_SIZE: u32 = 4096;

/// MIOpen treats a smaller file as absent, since it assumes a Git LFS pointer.
///
/// Source: ROCm/MIOpen 2d1fd997a, `SQLite::impl::CreateFileDb`.
pub const MIN_FILE_BYTES: u64 = 512;

/// Largest code object, 256 MiB: a limit for writing, and for reading unless
/// [`ReadOptions::max_object_bytes`](crate::ReadOptions) is set. Those of
/// MIOpen's kernels stay below 32 MiB. SQLite itself stores no row above 10^9
/// bytes.
pub const MAX_OBJECT_BYTES: u64 = gfxpack_model::code_object::MAX_BYTES;

/// Largest key accepted, name and arguments together: 1 MiB. MIOpen splices
/// both into one SQL statement.
pub const MAX_KEY_BYTES: usize = 1 << 20;

/// The table's name in MIOpen's queries.
///
/// Source: ROCm/MIOpen 2d1fd997a, `KernelConfig::table_name`.
pub(crate) const TABLE: &str = "kern_db";

/// A column: name, declared type, NOT NULL.
pub(crate) type Column = (&'static str, &'static str, bool);

/// The columns in order. MIOpen checks that the name, args and blob columns
/// exist, and selects blob, hash and size.
///
/// Source: ROCm/MIOpen 2d1fd997a, `KernelConfig::CreateQuery`.
pub(crate) const COLUMNS: [Column; 6] = [
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
    kernel_hash, uncompressed_size, octet_length(kernel_blob), rowid FROM kern_db WHERE rowid = \
    (SELECT rowid FROM kern_db \
    WHERE kernel_name = ?1 COLLATE BINARY AND kernel_args = ?2 COLLATE BINARY)";

/// The same for the dense layout's own tables, with the number of the object.
/// The hash is stored with the key, so both together identify what a lookup
/// reads.
pub(crate) const SELECT_ONE_DENSE: &str = "SELECT name, args, \
    CASE WHEN octet_length(blob) <= ?3 THEN blob END, \
    lower(hex(hash)), size, octet_length(blob), object \
    FROM kern_keys JOIN kern_objects ON id = object \
    WHERE name = ?1 COLLATE BINARY AND args = ?2 COLLATE BINARY";

/// The same for a table without row ids.
pub(crate) const SELECT_ONE_WITHOUT_ROWID: &str = "SELECT kernel_name, kernel_args, \
    CASE WHEN octet_length(kernel_blob) <= ?3 THEN kernel_blob END, \
    kernel_hash, uncompressed_size, octet_length(kernel_blob), NULL FROM kern_db \
    WHERE kernel_name = ?1 COLLATE BINARY AND kernel_args = ?2 COLLATE BINARY";

/// Selects every row as stored, in the order of the file.
pub(crate) const SELECT_ALL: &str = "SELECT kernel_name, kernel_args, \
    CASE WHEN octet_length(kernel_blob) <= ?1 THEN kernel_blob END, \
    kernel_hash, uncompressed_size, octet_length(kernel_blob) FROM kern_db";

/// Selects rows without their blobs; the caller appends the table.
pub(crate) const SELECT_ENTRIES: &str = "SELECT kernel_name, kernel_args, \
    octet_length(kernel_blob), kernel_hash, uncompressed_size FROM";

/// Selects keys only; the caller appends the table.
pub(crate) const SELECT_KEYS: &str = "SELECT kernel_name, kernel_args FROM";

/// Selects the keys of the dense layout in canonical order, without their
/// objects.
pub(crate) const SELECT_KEYS_DENSE: &str =
    "SELECT name, args FROM kern_keys ORDER BY name COLLATE BINARY, args COLLATE BINARY";

/// Canonical order.
pub(crate) const IN_ORDER: &str = "ORDER BY kernel_name COLLATE BINARY, kernel_args COLLATE BINARY";

/// The first column that MIOpen needs and the table does not have.
///
/// Source: ROCm/MIOpen 2d1fd997a, `SQLiteBase::CheckTableColumns` and
/// `KernDb::FindRecordUnsafe`.
pub(crate) fn missing_column(
    connection: &Connection,
) -> Result<Option<&'static str>, rusqlite::Error> {
    let mut statement = connection.prepare(&format!("PRAGMA table_info({TABLE})"))?;
    let names: Vec<String> =
        statement.query_map((), |row| row.get("name"))?.collect::<Result<_, _>>()?;
    let needed = COLUMNS.iter().map(|(name, ..)| *name).filter(|name| *name != "id");
    let mut missing = needed.filter(|name| !names.iter().any(|found| found == name));
    Ok(missing.next())
}

/// The unique index of the whole table on exactly the key, compared bytewise.
pub(crate) fn key_index(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    let mut statement = connection.prepare(
        "SELECT list.name, group_concat(info.name ORDER BY info.seqno) \
         FROM pragma_index_list(?1) AS list, pragma_index_xinfo(list.name) AS info \
         WHERE list.\"unique\" AND NOT list.partial AND info.key \
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
