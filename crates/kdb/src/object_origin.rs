//! Where code objects came from: side tables that MIOpen does not read.

#[cfg(feature = "tools")]
use std::collections::BTreeMap;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rusqlite::Connection;

/// The sources and tools that made a code object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectOrigin {
    /// The program that ran the compiler: `gfxpack 0.1.0`.
    pub generator: String,
    /// Name and version of the compiler.
    pub compiler: String,
    /// Digest of the whole toolchain.
    pub compiler_digest: String,
    /// The source file's name.
    pub source: String,
    /// Digest of the source with all its includes.
    pub source_digest: String,
}

impl ObjectOrigin {
    /// All fields, in the order of the columns.
    pub(crate) fn texts(&self) -> [&String; 5] {
        let Self { generator, compiler, compiler_digest, source, source_digest } = self;
        [generator, compiler, compiler_digest, source, source_digest]
    }
}

/// What the side tables hold about one row.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Note {
    /// The row's date, in seconds since the epoch.
    pub(crate) date: Option<i64>,
    pub(crate) origin: Option<Arc<ObjectOrigin>>,
}

/// Most bytes that one file's side tables may take in memory: a bound on what a
/// bad file can make a reader hold. No real file has so many; the side tables
/// of a larger one are ignored.
const MAX_BYTES: usize = 64 << 20;

/// Reads the side tables, and returns the notes row by row.
#[derive(Default)]
pub(crate) struct NoteReader {
    now: Note,
    /// For each run of rows that is still to come: its first row, and its note.
    ahead: VecDeque<(i64, Note)>,
}

impl NoteReader {
    /// Reads the side tables; a file without them has no notes.
    pub(crate) fn open(connection: &Connection) -> Result<Self, rusqlite::Error> {
        let count: i64 = connection.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' \
             AND name IN ('kern_origins', 'kern_origin_runs')",
            (),
            |row| row.get(0),
        )?;
        if count != 2 {
            return Ok(Self::default());
        }
        let mut origins: HashMap<i64, Arc<ObjectOrigin>> = HashMap::new();
        let mut statement = connection.prepare(
            "SELECT id, generator, compiler, compiler_digest, source, source_digest \
             FROM kern_origins WHERE 16384 >= octet_length(generator) + octet_length(compiler) \
             + octet_length(compiler_digest) + octet_length(source) + octet_length(source_digest)",
        )?;
        let mut rows = statement.query(())?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            // An entry with unexpected types is skipped.
            let Some((id, origin)) = origin(row) else { continue };
            let texts = origin.texts().map(String::len);
            bytes += texts.iter().sum::<usize>() + size_of::<ObjectOrigin>();
            if bytes > MAX_BYTES {
                return Ok(Self::default());
            }
            origins.insert(id, Arc::new(origin));
        }
        // Sorted here, since SQLite would sort on disk.
        let sql = "SELECT first_row, origin, date FROM kern_origin_runs \
                   WHERE first_row > 0 AND typeof(first_row) = 'integer'";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query(())?;
        let mut runs = Vec::new();
        while let Some(row) = rows.next()? {
            let integer = |index| row.get::<_, Option<i64>>(index).ok().flatten();
            let origin = integer(1).and_then(|id| origins.get(&id).cloned());
            runs.push((row.get(0)?, Note { date: integer(2), origin }));
            bytes += size_of::<(i64, Note)>();
            if bytes > MAX_BYTES {
                return Ok(Self::default());
            }
        }
        runs.sort_by_key(|(first, _)| *first);
        Ok(Self { now: Note::default(), ahead: runs.into() })
    }

    /// The note of a row. Rows must be requested in ascending order.
    pub(crate) fn note(&mut self, row: u64) -> Note {
        while let Some((_, note)) = self.ahead.pop_front_if(|(first, _)| *first <= row as i64) {
            self.now = note;
        }
        self.now.clone()
    }

    /// Counts the rows of each origin.
    #[cfg(feature = "tools")]
    pub(crate) fn count(mut self, rows: u64) -> BTreeMap<Arc<ObjectOrigin>, u64> {
        let mut counts: BTreeMap<Arc<ObjectOrigin>, u64> = BTreeMap::new();
        let mut counted = 0;
        loop {
            let next = self.ahead.pop_front();
            let first = next.as_ref().map_or(u64::MAX, |(first, _)| first.unsigned_abs());
            let until = first.saturating_sub(1).min(rows);
            if let Some(origin) = &self.now.origin {
                *counts.entry(Arc::clone(origin)).or_default() += until - counted;
            }
            counted = until;
            let Some((_, note)) = next else { return counts };
            self.now = note;
        }
    }
}

/// An entry of `kern_origins`, with its number; `None` if a column holds a
/// value of another type.
fn origin(row: &rusqlite::Row<'_>) -> Option<(i64, ObjectOrigin)> {
    let text = |index| row.get(index).ok();
    let origin = ObjectOrigin {
        generator: text(1)?,
        compiler: text(2)?,
        compiler_digest: text(3)?,
        source: text(4)?,
        source_digest: text(5)?,
    };
    Some((row.get(0).ok()?, origin))
}

#[cfg(test)]
mod tests {
    use gfxpack_sqlite::StepBudget;

    use super::*;

    #[test]
    fn a_table_without_an_index_is_scanned_once_for_all_rows() {
        let mut connection = Connection::open_in_memory().unwrap();
        let sql = "CREATE TABLE kern_origins (id, generator, compiler, compiler_digest, source, \
             source_digest);
             CREATE TABLE kern_origin_runs (first_row, origin, date);
             WITH RECURSIVE n(x) AS (SELECT 2000 UNION ALL SELECT x - 1 FROM n WHERE x > 1)
             INSERT INTO kern_origin_runs SELECT x, NULL, 7 * x FROM n";
        connection.execute_batch(sql).unwrap();
        // The budget counts units of a thousand instructions; a row takes about
        // ten instructions.
        StepBudget::install(&mut connection, 30).unwrap();
        let mut notes = NoteReader::open(&connection).unwrap();
        assert!((1..=2000).all(|row| notes.note(row).date == Some(7 * row as i64)));
    }
}
