//! The findings of a scan, in a private database on disk: there may be more
//! keys than memory holds.

use std::fmt;

use gfxpack_model::KernelKey;
use rusqlite::{Connection, OptionalExtension as _};

use crate::repair::page::{CellPlace, PageKind};

type Result<T> = std::result::Result<T, rusqlite::Error>;

/// Keys, and the positions of their rows.
pub(crate) struct Staging(Connection);

/// A row that could not be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Its key, if known.
    pub key: Option<KernelKey>,
    /// The number of the row, or of its code object, if the key is not known.
    pub row: Option<i64>,
    /// The page of the row, if the key is not known.
    pub page: Option<u32>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, row, page, reason } = self;
        match (key, row, page) {
            (Some(key), ..) => write!(f, "{key}: {reason}"),
            (None, Some(row), Some(page)) => write!(f, "row {row} on page {page}: {reason}"),
            (None, _, Some(page)) => write!(f, "on page {page}: {reason}"),
            (None, _, None) => f.write_str(reason),
        }
    }
}

/// What part of a row a cell without a known key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LostPart {
    /// All of it, in MIOpen's layout.
    Row = 0,
    /// The key of the dense layout.
    Key = 1,
    /// The code object of the dense layout.
    Object = 2,
}

/// A row that was found, and whose hash matches.
#[derive(Debug, Clone)]
pub(crate) struct WholeRow {
    pub(crate) key: KernelKey,
    pub(crate) hash: String,
    pub(crate) place: CellPlace,
}

/// Kinds of pages, in the order of their discriminants.
const KINDS: [PageKind; 3] = [PageKind::TableLeaf, PageKind::IndexLeaf, PageKind::IndexInterior];

impl Staging {
    /// Makes an empty one, which SQLite deletes when it is closed.
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
             CREATE TABLE named_rows (number INTEGER PRIMARY KEY);
             CREATE TABLE leads (object INT, hash TEXT, PRIMARY KEY (object, hash)) WITHOUT ROWID;
             CREATE TABLE unnamed (part INT, number INT, page INT, hash TEXT, reason TEXT,
               PRIMARY KEY (part, number)) WITHOUT ROWID;
             BEGIN",
        )?;
        Ok(Self(connection))
    }

    /// Records an intact row. Of several with one key, one from the
    /// byte-by-byte search is replaced first (`doubt`), then the one with the
    /// lower row number, which is older.
    pub(crate) fn row(&self, found: &WholeRow, doubt: bool, number: i64) -> Result<()> {
        let WholeRow { key, hash, place } = found;
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
            place.kind as u32,
        ))?;
        Ok(())
    }

    /// Records a code object of the dense layout.
    pub(crate) fn object(&self, hash: &str, place: CellPlace) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO objects VALUES (?1, ?2, ?3, ?4)";
        self.0.prepare_cached(sql)?.execute((hash, place.page, place.at, place.kind as u32))?;
        Ok(())
    }

    /// Records a key of the dense layout.
    pub(crate) fn key(&self, key: &KernelKey, hash: &str, doubt: bool) -> Result<()> {
        let sql = "INSERT INTO keys VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET doubt = min(doubt, excluded.doubt)";
        self.0.prepare_cached(sql)?.execute((&key.kernel_name, &key.kernel_args, hash, doubt))?;
        Ok(())
    }

    /// Records that a row with this key, and this number, existed, and why it
    /// is lost.
    pub(crate) fn named(
        &self,
        key: &KernelKey,
        reason: Option<&str>,
        row: Option<i64>,
    ) -> Result<()> {
        if let Some(row) = row {
            let sql = "INSERT OR IGNORE INTO named_rows VALUES (?1)";
            self.0.prepare_cached(sql)?.execute([row])?;
        }
        let sql = "INSERT INTO named VALUES (?1, ?2, ?3)
            ON CONFLICT DO UPDATE SET reason = coalesce(reason, excluded.reason)";
        self.0.prepare_cached(sql)?.execute((&key.kernel_name, &key.kernel_args, reason))?;
        Ok(())
    }

    /// Records that a key of the dense layout leads to object number `object`,
    /// with `hash`.
    pub(crate) fn leads(&self, object: i64, hash: &str) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO leads VALUES (?1, ?2)";
        self.0.prepare_cached(sql)?.execute((object, hash)).map(drop)
    }

    /// Records a part of a row that may turn out to have no key, under its own
    /// number. An object has none until a key leads to it. The hash of an
    /// intact object is known.
    pub(crate) fn unnamed(
        &self,
        part: LostPart,
        number: i64,
        place: CellPlace,
        hash: Option<&str>,
        reason: &str,
    ) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO unnamed VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = self.0.prepare_cached(sql)?;
        insert.execute((part as i64, number, place.page, hash, reason)).map(drop)
    }

    /// Joins keys and code objects of the dense layout by hash, since the
    /// number of an object, or its tree, may be damaged.
    pub(crate) fn join(&self) -> Result<()> {
        self.0.execute_batch(
            "INSERT OR IGNORE INTO rows
               SELECT name, args, doubt, 0, hash, page, at, kind FROM keys JOIN objects USING (hash)
               ORDER BY name, args, doubt, hash;
             INSERT OR IGNORE INTO named
               SELECT name, args, 'its code object can''t be reached or is damaged' FROM keys;
             DELETE FROM unnamed WHERE part = 0
               AND (number IN named_rows OR number IN (SELECT number FROM rows));
             CREATE INDEX leads_by_hash ON leads (hash);
             DELETE FROM unnamed WHERE part = 2
               AND (number IN (SELECT object FROM leads) OR hash IN (SELECT hash FROM leads));",
        )?;
        // A code object without a key and a damaged key may belong to one row.
        let count = |part: LostPart| {
            let sql = "SELECT count(*) FROM unnamed WHERE part = ?1";
            self.0.query_row(sql, [part as i64], |row| row.get::<_, i64>(0))
        };
        let shorter = if count(LostPart::Key)? < count(LostPart::Object)? {
            LostPart::Key
        } else {
            LostPart::Object
        };
        self.0.execute("DELETE FROM unnamed WHERE part = ?1", [shorter as i64]).map(drop)
    }

    /// Counts the intact rows.
    pub(crate) fn count(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM rows";
        self.0.query_row(sql, (), |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    }

    /// The first row after `after`, in canonical order.
    pub(crate) fn next_row(&self, after: Option<&KernelKey>) -> Result<Option<WholeRow>> {
        let take = |row: &rusqlite::Row<'_>| {
            Ok(WholeRow {
                key: KernelKey { kernel_name: row.get(0)?, kernel_args: row.get(1)? },
                hash: row.get(2)?,
                place: CellPlace {
                    page: row.get(3)?,
                    at: row.get(4)?,
                    kind: KINDS[row.get::<_, u32>(5)? as usize],
                },
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

    /// Passes every known key without an intact row to `each`, in canonical
    /// order, and then parts without a key, by position.
    pub(crate) fn for_each_lost(&self, mut each: impl FnMut(Lost)) -> Result<()> {
        let mut statement = self.0.prepare(
            "SELECT name, args, reason FROM named
             WHERE NOT EXISTS (SELECT 1 FROM rows WHERE (rows.name, rows.args) = (named.name, named.args))
             ORDER BY name, args",
        )?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let key = KernelKey { kernel_name: row.get(0)?, kernel_args: row.get(1)? };
            let reason: Option<String> = row.get(2)?;
            let reason = reason.unwrap_or_else(|| "its row can't be reached".to_owned());
            each(Lost { key: Some(key), row: None, page: None, reason });
        }
        let sql = "SELECT part, number, page, reason FROM unnamed ORDER BY page, number";
        let mut statement = self.0.prepare(sql)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let (part, number): (i64, i64) = (row.get(0)?, row.get(1)?);
            let number = (part != LostPart::Key as i64).then_some(number);
            each(Lost { key: None, row: number, page: row.get(2)?, reason: row.get(3)? });
        }
        Ok(())
    }
}
