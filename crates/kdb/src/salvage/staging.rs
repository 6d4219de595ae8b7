//! What a walk through the pages came upon, in a database on disk that nobody
//! else sees: there may be more keys than memory holds.

use gfxpack_plan::KernelKey;
use rusqlite::{Connection, OptionalExtension as _};

use super::Place;

type Result<T> = std::result::Result<T, rusqlite::Error>;

/// Keys, and where their rows are.
pub(crate) struct Staging(Connection);

/// A row that was found, and whose hash holds.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) key: KernelKey,
    pub(crate) hash: String,
    pub(crate) place: Place,
}

impl Staging {
    /// An empty one, which SQLite removes when it is closed.
    pub(crate) fn new() -> Result<Self> {
        let connection = Connection::open("")?;
        connection.execute_batch(
            "PRAGMA journal_mode = OFF;
             PRAGMA synchronous = OFF;
             PRAGMA cache_size = -32768;
             CREATE TABLE rows (name TEXT, args TEXT, doubt INT, number INT, hash TEXT,
               page INT, at INT, kind INT, PRIMARY KEY (name, args)) WITHOUT ROWID;
             CREATE TABLE objects (hash TEXT PRIMARY KEY, page INT, at INT, kind INT) WITHOUT ROWID;
             CREATE TABLE keys (name TEXT, args TEXT, hash TEXT, doubt INT,
               PRIMARY KEY (name, args, hash)) WITHOUT ROWID;
             CREATE TABLE named (name TEXT, args TEXT, reason TEXT,
               PRIMARY KEY (name, args)) WITHOUT ROWID;
             BEGIN",
        )?;
        Ok(Self(connection))
    }

    /// Notes a whole row. Of several with one key that from a page in doubt
    /// yields, then the one with the lower row number, which is the older.
    pub(crate) fn row(&self, found: &Found, doubt: bool, number: i64) -> Result<()> {
        let Found { key, hash, place } = found;
        let sql = "INSERT INTO rows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            ON CONFLICT (name, args) DO UPDATE SET doubt = excluded.doubt,
              number = excluded.number, hash = excluded.hash, page = excluded.page,
              at = excluded.at, kind = excluded.kind
            WHERE (excluded.doubt, -excluded.number, excluded.hash) < (doubt, -number, hash)";
        let (name, args) = (&key.kernel_name, &key.kernel_args);
        self.0.prepare_cached(sql)?.execute((
            name,
            args,
            doubt,
            number,
            hash,
            place.page,
            place.at,
            place.kind_code(),
        ))?;
        Ok(())
    }

    /// Notes a code object of the dense layout.
    pub(crate) fn object(&self, hash: &str, place: Place) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO objects VALUES (?1, ?2, ?3, ?4)";
        self.0.prepare_cached(sql)?.execute((hash, place.page, place.at, place.kind_code()))?;
        Ok(())
    }

    /// Notes a key of the dense layout.
    pub(crate) fn key(&self, key: &KernelKey, hash: &str, doubt: bool) -> Result<()> {
        let sql = "INSERT INTO keys VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET doubt = min(doubt, excluded.doubt)";
        self.0.prepare_cached(sql)?.execute((&key.kernel_name, &key.kernel_args, hash, doubt))?;
        Ok(())
    }

    /// Notes that there was a row of this key, and what became of it.
    pub(crate) fn named(&self, key: &KernelKey, reason: Option<&str>) -> Result<()> {
        let sql = "INSERT INTO named VALUES (?1, ?2, ?3)
            ON CONFLICT DO UPDATE SET reason = coalesce(reason, excluded.reason)";
        self.0.prepare_cached(sql)?.execute((&key.kernel_name, &key.kernel_args, reason))?;
        Ok(())
    }

    /// Brings keys and code objects of the dense layout together, by the hash:
    /// the number of an object may be damaged, or its tree.
    pub(crate) fn join(&self) -> Result<()> {
        self.0.execute_batch(
            "INSERT OR IGNORE INTO rows
               SELECT name, args, doubt, 0, hash, page, at, kind FROM keys JOIN objects USING (hash)
               ORDER BY name, args, doubt, hash;
             INSERT OR IGNORE INTO named
               SELECT name, args, 'its code object can''t be reached or is damaged' FROM keys",
        )
    }

    /// How many whole rows there are.
    pub(crate) fn count(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM rows";
        self.0.query_row(sql, (), |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    }

    /// The first row after a key, in canonical order.
    pub(crate) fn next_row(&self, after: Option<&KernelKey>) -> Result<Option<Found>> {
        let take = |row: &rusqlite::Row<'_>| {
            Ok(Found {
                key: KernelKey { kernel_name: row.get(0)?, kernel_args: row.get(1)? },
                hash: row.get(2)?,
                place: Place::of_codes(row.get(3)?, row.get(4)?, row.get(5)?),
            })
        };
        let columns = "SELECT name, args, hash, page, at, kind FROM rows";
        let order = "ORDER BY name, args LIMIT 1";
        match after {
            None => {
                let mut statement = self.0.prepare_cached(&format!("{columns} {order}"))?;
                statement.query_row((), take).optional()
            }
            Some(KernelKey { kernel_name, kernel_args }) => {
                let sql = format!("{columns} WHERE (name, args) > (?1, ?2) {order}");
                let mut statement = self.0.prepare_cached(&sql)?;
                statement.query_row((kernel_name, kernel_args), take).optional()
            }
        }
    }

    /// Every key that is known and has no whole row, with the reason where it
    /// is known, in canonical order.
    pub(crate) fn for_each_lost(
        &self,
        mut each: impl FnMut(KernelKey, Option<String>),
    ) -> Result<()> {
        let mut statement = self.0.prepare(
            "SELECT name, args, reason FROM named
             WHERE NOT EXISTS (SELECT 1 FROM rows WHERE (rows.name, rows.args) = (named.name, named.args))
             ORDER BY name, args",
        )?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            each(KernelKey { kernel_name: row.get(0)?, kernel_args: row.get(1)? }, row.get(2)?);
        }
        Ok(())
    }
}
