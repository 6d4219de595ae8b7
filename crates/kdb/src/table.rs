//! What SQLite says of the table that MIOpen asks.

use rusqlite::Connection;

use crate::schema::{COLUMNS, KEY_COLUMNS, TABLE};

/// The first column that MIOpen's check or its query would miss.
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

/// The unique index of the whole table on exactly the key, by its bytes.
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
