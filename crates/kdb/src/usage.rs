//! Which kernels of a user's kdb were used last, and which go when it grows
//! too large.

use rusqlite::Connection;

use gfxpack_plan::KernelKey;

use crate::turn;

/// A table of its own: MIOpen asks for kern_db and tolerates others. A row
/// without an entry, one that MIOpen wrote, counts as the oldest.
const CREATE: &str = "CREATE TABLE IF NOT EXISTS gfxpack_usage \
    (id INTEGER PRIMARY KEY, used INTEGER NOT NULL)";

const NOTE: &str = "INSERT INTO gfxpack_usage SELECT rowid, ?3 FROM kern_db \
    WHERE kernel_name = ?1 AND kernel_args = ?2 \
    ON CONFLICT DO UPDATE SET used = max(used, excluded.used)";

const OLDEST: &str = "SELECT kern_db.rowid, octet_length(kernel_blob) FROM kern_db \
    LEFT JOIN gfxpack_usage ON gfxpack_usage.id = kern_db.rowid \
    ORDER BY coalesce(used, 0), kern_db.rowid LIMIT ?1";

/// Entries whose row is gone would make a later row of the same id look used.
const SWEEP: &str = "DELETE FROM gfxpack_usage WHERE id NOT IN (SELECT rowid FROM kern_db)";

/// Rows that go in one transaction, so that none takes long.
const BATCH: i64 = 64;

/// Notes when kernels were used, in seconds since the epoch. Part of a
/// transaction of the caller's.
pub(crate) fn note<'a>(
    connection: &Connection,
    used: impl IntoIterator<Item = (&'a KernelKey, u64)>,
) -> Result<(), rusqlite::Error> {
    connection.execute_batch(CREATE)?;
    let mut statement = connection.prepare_cached(NOTE)?;
    for (key, seconds) in used {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        statement.execute((&key.kernel_name, &key.kernel_args, seconds))?;
    }
    Ok(())
}

/// Makes room for `more` bytes: while the rows of the file and those would
/// take more than `limit`, what was used longest ago goes, and then as much
/// again as makes the next call cheap. Says how many rows went.
///
/// Freed pages are used again. Only a file larger than the limit, since that
/// was lowered, is cut, and only where it was made to be.
pub(crate) fn make_room(
    connection: &Connection,
    more: u64,
    limit: u64,
) -> Result<u64, rusqlite::Error> {
    let mut gone = 0;
    if bytes(connection)?.used.saturating_add(more) <= limit {
        return Ok(gone);
    }
    let goal = limit - limit / 16;
    loop {
        let transaction = turn::begin(connection)?;
        let used = bytes(&transaction)?.used.saturating_add(more);
        let mut excess = used.saturating_sub(goal);
        if excess == 0 {
            break;
        }
        transaction.execute_batch(CREATE)?;
        let mut deleted = 0;
        {
            let mut oldest = transaction.prepare_cached(OLDEST)?;
            let oldest: Vec<(i64, i64)> = oldest
                .query_map([BATCH], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<_, _>>()?;
            let mut delete = transaction.prepare_cached("DELETE FROM kern_db WHERE rowid = ?1")?;
            for (id, size) in oldest {
                if excess == 0 {
                    break;
                }
                deleted += delete.execute([id])?;
                excess = excess.saturating_sub(size.unsigned_abs());
            }
        }
        if deleted == 0 {
            break;
        }
        gone += deleted as u64;
        transaction.execute(SWEEP, ())?;
        transaction.commit()?;
    }
    if bytes(connection)?.file > limit {
        let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
        let mut freed = vacuum.query(())?;
        // A page with each step.
        while freed.next()?.is_some() {}
    }
    Ok(gone)
}

struct Bytes {
    file: u64,
    used: u64,
}

fn bytes(connection: &Connection) -> Result<Bytes, rusqlite::Error> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let size = pragma("page_size")?;
    let (pages, free) = (pragma("page_count")?, pragma("freelist_count")?);
    let bytes = |pages: i64| u64::try_from(pages.saturating_mul(size)).unwrap_or(0);
    Ok(Bytes { file: bytes(pages), used: bytes(pages - free) })
}
