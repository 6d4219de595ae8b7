//! Where code objects came from: side tables that MIOpen does not ask for.

#[cfg(feature = "tools")]
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _};

/// What a code object was made of, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectOrigin {
    /// The program that had it compiled: `gfxpack 0.1.0`.
    pub generator: String,
    /// The compiler in words.
    pub compiler: String,
    /// Digest of the whole toolchain.
    pub compiler_digest: String,
    /// The source file's name.
    pub source: String,
    /// Digest of the source with every include.
    pub source_digest: String,
}

impl ObjectOrigin {
    /// All of it, in the order of the columns.
    pub(crate) fn texts(&self) -> [&String; 5] {
        let Self { generator, compiler, compiler_digest, source, source_digest } = self;
        [generator, compiler, compiler_digest, source, source_digest]
    }
}

/// What is known of a row beside the row itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Note {
    /// Seconds since the epoch from which the row is.
    pub(crate) date: Option<i64>,
    pub(crate) origin: Option<Arc<ObjectOrigin>>,
}

/// Bytes of one file's origins: a bound on what a bad file can make a reader
/// hold. Nobody writes so many, and what is in such a file is not believed.
const MAX_BYTES: usize = 64 << 20;

/// Reads the side tables along with the rows.
#[derive(Default)]
pub(crate) struct NoteReader {
    origins: HashMap<i64, Arc<ObjectOrigin>>,
    now: Note,
    /// The next entry, once it has been looked for.
    next: Option<(i64, Note)>,
    present: bool,
}

impl NoteReader {
    /// Reads the origins; a file without side tables has none.
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
        let mut reader = Self { present: true, ..Self::default() };
        let mut statement = connection.prepare(
            "SELECT id, generator, compiler, compiler_digest, source, source_digest \
             FROM kern_origins WHERE 16384 >= octet_length(generator) + octet_length(compiler) \
             + octet_length(compiler_digest) + octet_length(source) + octet_length(source_digest)",
        )?;
        let mut rows = statement.query(())?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            // An entry of another kind notes nothing.
            let Some((id, origin)) = origin(row) else { continue };
            let texts = origin.texts().map(String::len);
            bytes += texts.iter().sum::<usize>() + size_of::<ObjectOrigin>();
            if bytes > MAX_BYTES {
                return Ok(Self::default());
            }
            reader.origins.insert(id, Arc::new(origin));
        }
        reader.find_next(connection, 0)?;
        Ok(reader)
    }

    /// What is known of a row. Rows must be asked for in ascending order.
    pub(crate) fn note(
        &mut self,
        connection: &Connection,
        row: u64,
    ) -> Result<Note, rusqlite::Error> {
        while let Some((first, note)) = self.next.take_if(|(first, _)| *first <= row as i64) {
            self.now = note;
            self.find_next(connection, first)?;
        }
        Ok(self.now.clone())
    }

    /// How many of a file's rows are of each origin.
    #[cfg(feature = "tools")]
    pub(crate) fn count(
        mut self,
        connection: &Connection,
        rows: u64,
    ) -> Result<BTreeMap<Arc<ObjectOrigin>, u64>, rusqlite::Error> {
        let mut counts: BTreeMap<Arc<ObjectOrigin>, u64> = BTreeMap::new();
        let mut counted = 0;
        loop {
            let next = self.next.take();
            let first = next.as_ref().map_or(u64::MAX, |(first, _)| first.unsigned_abs());
            let until = first.saturating_sub(1).min(rows);
            if let Some(origin) = &self.now.origin {
                *counts.entry(Arc::clone(origin)).or_default() += until - counted;
            }
            counted = until;
            let Some((first, note)) = next else { return Ok(counts) };
            self.now = note;
            self.find_next(connection, first)?;
        }
    }

    fn find_next(&mut self, connection: &Connection, after: i64) -> Result<(), rusqlite::Error> {
        if !self.present {
            return Ok(());
        }
        let sql = "SELECT first_row, origin, date FROM kern_origin_runs \
                   WHERE first_row > ?1 ORDER BY first_row LIMIT 1";
        let mut statement = connection.prepare_cached(sql)?;
        let found = statement
            .query_row([after], |row| {
                let integer = |index| row.get::<_, Option<i64>>(index).ok().flatten();
                Ok((row.get(0)?, integer(1), integer(2)))
            })
            .optional()?;
        self.next = found.map(|(first, origin, date)| {
            let origin = origin.and_then(|id| self.origins.get(&id).cloned());
            (first, Note { date, origin })
        });
        Ok(())
    }
}

/// An entry of the first table, with its number; none where a column holds
/// something else.
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
