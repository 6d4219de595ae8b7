//! Records when the kernels of a user's kdb were last used, and deletes the
//! oldest when the file grows too large.

use gfxpack_model::KernelKey;
use rusqlite::Connection;

use crate::open::Opened;
use crate::user::transaction::{self, WRITE};

/// A separate table: MIOpen uses only kern_db and tolerates others. A row
/// without an entry was written by MIOpen, and counts as the oldest.
const CREATE: &str = "CREATE TABLE IF NOT EXISTS gfxpack_usage \
    (id INTEGER PRIMARY KEY, used INTEGER NOT NULL)";

const NOTE: &str = "INSERT INTO gfxpack_usage SELECT rowid, ?3 FROM kern_db \
    WHERE kernel_name = ?1 AND kernel_args = ?2 \
    ON CONFLICT DO UPDATE SET used = max(used, excluded.used)";

const OLDEST: &str = "SELECT kern_db.rowid, octet_length(kernel_blob), coalesce(used, 0) FROM kern_db \
    LEFT JOIN gfxpack_usage ON gfxpack_usage.id = kern_db.rowid \
    ORDER BY coalesce(used, 0), kern_db.rowid LIMIT ?1";

/// Does not delete rows that another process has used or stored since
/// [`OLDEST`] ran.
const DELETE: &str = "DELETE FROM kern_db WHERE rowid = ?1 \
    AND coalesce((SELECT used FROM gfxpack_usage WHERE id = ?1), 0) <= ?2";

const FORGET: &str = "DELETE FROM gfxpack_usage WHERE id = ?1";

/// Deletes entries without a row, which would make a later row with the same id
/// look used. MIOpen leaves such entries behind, and so does replacing a row.
const SWEEP: &str = "DELETE FROM gfxpack_usage WHERE id NOT IN (SELECT rowid FROM kern_db)";

/// Rows, and roughly bytes of them, deleted in one transaction, so that none
/// takes long.
const BATCH_ROWS: usize = 2048;
const BATCH_BYTES: u64 = 4 << 20;

/// Rows found by one scan. The time of a scan grows with the file, and its
/// memory with these rows.
const LOOK_ROWS: i64 = 1 << 16;

/// Records when kernels were used, in seconds since the epoch. The caller has
/// begun the transaction.
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

/// Makes room for `more` bytes. If the rows of the file and those would exceed
/// `limit`, deletes the least recently used rows, and a sixteenth of the limit
/// more than needed, so that the next call has nothing to do. Returns how many
/// were deleted.
///
/// Freed pages are reused. The file itself shrinks only if it is larger than
/// the limit (which was then lowered) and was created with `auto_vacuum`.
///
/// However many rows are deleted, the whole file is scanned once for every
/// [`LOOK_ROWS`] of them, and each step has its own budget: a file that has
/// grown for months must not prevent storing the next kernel.
pub(crate) fn make_room(file: &Opened, more: u64, limit: u64) -> Result<u64, rusqlite::Error> {
    let mut gone = 0;
    if PageUse::measure(file)?.used.saturating_add(more) <= limit {
        return Ok(gone);
    }
    let goal = limit - limit / 16;
    while PageUse::measure(file)?.excess(more, goal) > 0 {
        let oldest = oldest(file)?;
        let deleted = delete(file, &oldest, more, goal)?;
        gone += deleted;
        if deleted == 0 {
            break;
        }
    }
    if PageUse::measure(file)?.file > limit {
        let transaction = transaction::begin_writing(file.connection(), WRITE)?;
        let mut vacuum = transaction.prepare("PRAGMA incremental_vacuum")?;
        let mut freed = vacuum.query(())?;
        // Frees one page with each step, and renews the budget for it.
        while freed.next()?.is_some() {
            file.connection();
        }
        drop(freed);
        drop(vacuum);
        transaction.commit()?;
    }
    Ok(gone)
}

/// A row's id, the size of its blob, and when it was used.
type RowUse = (i64, i64, i64);

/// The least recently used rows, the oldest first.
fn oldest(file: &Opened) -> Result<Vec<RowUse>, rusqlite::Error> {
    let bytes = PageUse::measure(file)?.file;
    let transaction = transaction::begin_writing(file.connection_to_read(bytes), WRITE)?;
    transaction.execute_batch(CREATE)?;
    transaction.execute(SWEEP, ())?;
    transaction.commit()?;
    let transaction = transaction::begin(file.connection_to_read(bytes))?;
    let mut oldest = transaction.prepare_cached(OLDEST)?;
    let rows = oldest.query_map([LOOK_ROWS], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

/// Deletes rows, the oldest first, until the rest and `more` take at most
/// `goal` bytes. Returns how many were deleted.
fn delete(
    file: &Opened,
    mut oldest: &[RowUse],
    more: u64,
    goal: u64,
) -> Result<u64, rusqlite::Error> {
    let mut gone = 0;
    while !oldest.is_empty() {
        let transaction = transaction::begin_writing(file.connection(), WRITE)?;
        let mut excess = PageUse::within(&transaction)?.excess(more, goal).min(BATCH_BYTES);
        if excess == 0 {
            break;
        }
        let mut delete = transaction.prepare_cached(DELETE)?;
        let mut forget = transaction.prepare_cached(FORGET)?;
        let mut taken = 0;
        for &(id, size, used) in oldest.iter().take(BATCH_ROWS) {
            if excess == 0 {
                break;
            }
            taken += 1;
            if delete.execute((id, used))? > 0 {
                forget.execute([id])?;
                gone += 1;
                excess = excess.saturating_sub(size.unsigned_abs());
            }
        }
        drop((delete, forget));
        transaction.commit()?;
        oldest = &oldest[taken..];
    }
    Ok(gone)
}

struct PageUse {
    file: u64,
    used: u64,
}

impl PageUse {
    fn measure(file: &Opened) -> Result<Self, rusqlite::Error> {
        let transaction = transaction::begin(file.connection())?;
        Self::within(&transaction)
    }

    fn within(transaction: &Connection) -> Result<Self, rusqlite::Error> {
        let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let size = pragma("page_size")?;
        let (pages, free) = (pragma("page_count")?, pragma("freelist_count")?);
        let bytes = |pages: i64| u64::try_from(pages.saturating_mul(size)).unwrap_or(0);
        Ok(Self { file: bytes(pages), used: bytes(pages - free) })
    }

    /// By how many bytes the rows and `more` exceed `goal`.
    fn excess(&self, more: u64, goal: u64) -> u64 {
        self.used.saturating_add(more).saturating_sub(goal)
    }
}
