//! Writes the side tables with the origins of code objects.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use crate::object_origin::{Note, ObjectOrigin};

/// Each origin once, numbered in the order of first use.
const CREATE_ORIGINS: &str = "CREATE TABLE kern_origins (\
    id INTEGER PRIMARY KEY, \
    generator TEXT NOT NULL, \
    compiler TEXT NOT NULL, \
    compiler_digest TEXT NOT NULL, \
    source TEXT NOT NULL, \
    source_digest TEXT NOT NULL)";

/// Runs of rows with the same origin and date: an entry holds the number of its
/// first row, in the order of the keys and counted from 1. Rows of one source
/// follow one another, so there are far fewer entries than rows.
const CREATE_RUNS: &str = "CREATE TABLE kern_origin_runs (\
    first_row INTEGER PRIMARY KEY, \
    origin INT, \
    date INT)";

/// Writes the side tables, which are created with the first row that has a
/// note.
#[derive(Default)]
pub(crate) struct NoteWriter {
    ids: HashMap<Arc<ObjectOrigin>, i64>,
    last: Note,
    made: bool,
}

impl NoteWriter {
    /// Adds the note of row number `row`.
    pub(crate) fn add(
        &mut self,
        connection: &Connection,
        row: u64,
        note: &Note,
    ) -> Result<(), rusqlite::Error> {
        if *note == self.last {
            return Ok(());
        }
        if !self.made {
            connection.execute_batch(CREATE_ORIGINS)?;
            connection.execute_batch(CREATE_RUNS)?;
            self.made = true;
        }
        let origin = note.origin.as_ref();
        let id = origin.map(|origin| self.id_of(connection, origin)).transpose()?;
        connection
            .prepare_cached("INSERT INTO kern_origin_runs VALUES (?1, ?2, ?3)")?
            .execute((row as i64, id, note.date))?;
        self.last = note.clone();
        Ok(())
    }

    /// The number of an origin, which is stored if it is new.
    fn id_of(
        &mut self,
        connection: &Connection,
        origin: &Arc<ObjectOrigin>,
    ) -> Result<i64, rusqlite::Error> {
        if let Some(id) = self.ids.get(origin) {
            return Ok(*id);
        }
        let id = self.ids.len() as i64 + 1;
        let [a, b, c, d, e] = origin.texts();
        let sql = "INSERT INTO kern_origins VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        connection.prepare_cached(sql)?.execute((id, a, b, c, d, e))?;
        self.ids.insert(Arc::clone(origin), id);
        Ok(id)
    }
}
