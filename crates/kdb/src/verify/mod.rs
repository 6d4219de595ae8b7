//! Checks everything that can be wrong with a kdb, and does not stop at the
//! first problem.

pub(crate) mod check_row;
pub(crate) mod report;

use std::path::Path;

use gfxpack_model::{Target, target_of_kdb};

use crate::error::{Fault, ReadError};
use crate::header::Journal;
use crate::open::{self, Opened, WorkBudget};
use crate::parallel;
use crate::schema::{
    COLUMNS, KEY_COLUMNS, MAX_OBJECT_BYTES, SELECT_ALL, TABLE, columns, key_index, missing_column,
};
use crate::verify::check_row::UncheckedRow;
use crate::verify::report::{Finding, FindingClass, Report};

/// Bytes of code objects in memory at a time.
const WINDOW_BYTES: u64 = 64 << 20;

/// Options of a verification.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct VerifyOptions<'a> {
    /// Called on the calling thread after every row, with the number of rows so
    /// far and in all.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Called before every row to ask whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// Verifies a kdb: SQLite's integrity check, journal mode, table and index; of
/// every row the key, the blob, the hash and the code object's gfx target.
///
/// Code objects must suit `expected`, or else the target in the file's name,
/// and always the device in their own key. Memory does not grow with the file.
/// Work runs in the current rayon pool.
///
/// # Errors
/// If there is nothing to verify, or the caller asked to stop. All other problems are in the report.
pub fn verify(
    path: &Path,
    expected: Option<&Target>,
    options: &VerifyOptions<'_>,
) -> Result<Report, ReadError> {
    let target = expected.cloned().or_else(|| target_of_kdb(path));
    let mut run = Verification { path, options, report: Report { target, ..Report::default() } };
    let (header, bytes) = match open::probe(path) {
        Ok(probe) => probe,
        Err(error @ ReadError { fault: Fault::Io(_) | Fault::NotAFile, .. }) => return Err(error),
        Err(error) => return Ok(run.end_with(error)),
    };
    if header.journal != Journal::Delete {
        let mode = header.journal.name();
        run.found(FindingClass::JournalMode, format!("the journal mode is `{mode}`, not `delete`"));
    }
    match run.content(bytes) {
        Err(error @ ReadError { fault: Fault::Interrupted, .. }) => Err(error),
        Err(error) => Ok(run.end_with(error)),
        Ok(()) => Ok(run.report),
    }
}

struct Verification<'a> {
    path: &'a Path,
    options: &'a VerifyOptions<'a>,
    report: Report,
}

impl Verification<'_> {
    fn content(&mut self, bytes: u64) -> Result<(), ReadError> {
        let (connection, budget) = open::connect(self.path, bytes)?;
        let file = Opened::new(self.path, connection, budget, WorkBudget::new(bytes))?;
        let sqlite = |source| file.sqlite(source);
        // Computing has no bound, and SQLite's check would do it for each row.
        let computed =
            file.connection().query_row(COMPUTED, (), |row| row.get::<_, Option<String>>(0));
        let computed = computed.map_err(sqlite)?;
        // Damage that ends one check may still allow the next.
        if computed.is_none()
            && let Err(error) = self.integrity(&file)
        {
            self.add_error(error);
        }
        self.schema(&file)?;
        // A missing index may be one with a condition; that finding is enough.
        if let Some(name) = computed
            && !self.report.counts.contains_key(&FindingClass::Schema)
        {
            let detail = format!("`{name}` is computed, so SQLite's check of the file is left out");
            self.found(FindingClass::Schema, detail);
        }
        let rows = match missing_column(file.connection()).map_err(sqlite)? {
            None => self.rows(&file),
            Some(_) => Ok(()),
        };
        self.report.work_bytes = file.work.spent();
        rows
    }

    fn integrity(&mut self, file: &Opened) -> Result<(), ReadError> {
        let sqlite = |source| file.sqlite(source);
        let ignored = file.connection().pragma_update(None, "ignore_check_constraints", true);
        ignored.map_err(sqlite)?;
        let done = file.for_each("PRAGMA integrity_check(100)", (), |row| {
            let line: String = row.get(0).map_err(sqlite)?;
            if line != "ok" {
                self.found(FindingClass::Integrity, line);
            }
            Ok(())
        });
        file.work.restart();
        done
    }

    /// Compares the table's columns and index with MIOpen's.
    fn schema(&mut self, file: &Opened) -> Result<(), ReadError> {
        let sqlite = |source| file.sqlite(source);
        let found = columns(file.connection()).map_err(sqlite)?;
        if found.is_empty() {
            self.found(FindingClass::Schema, format!("there is no table {TABLE}"));
            return Ok(());
        }
        for (name, declared, not_null) in COLUMNS {
            match found.iter().find(|(found, ..)| found == name) {
                None => self.found(FindingClass::Schema, format!("column `{name}` is missing")),
                Some((_, of, null)) => {
                    if !of.eq_ignore_ascii_case(declared) || *null != not_null {
                        let null = if not_null { " NOT NULL" } else { "" };
                        let detail = format!("column `{name}` is not declared {declared}{null}");
                        self.found(FindingClass::Schema, detail);
                    }
                }
            }
        }
        if key_index(file.connection()).map_err(sqlite)?.is_none() {
            let detail = format!("there is no unique index on ({})", KEY_COLUMNS.join(", "));
            self.found(FindingClass::Schema, detail);
        }
        Ok(())
    }

    fn rows(&mut self, file: &Opened) -> Result<(), ReadError> {
        let VerifyOptions { progress, cancelled } = *self.options;
        let total = progress.map_or(Ok(0), |_| file.count())?;
        let mut statement = file.prepare(SELECT_ALL)?;
        let mut rows =
            statement.query([MAX_OBJECT_BYTES as i64]).map_err(|source| file.sqlite(source))?;
        let target = self.report.target.clone();
        let report = &mut self.report;
        let mut number = 0;
        parallel::in_order(
            WINDOW_BYTES,
            || {
                if cancelled.is_some_and(|cancelled| cancelled()) {
                    return Err(Fault::Interrupted.of(&file.path));
                }
                let Some(row) = file.next(&mut rows)? else { return Ok(None) };
                number += 1;
                let row = UncheckedRow::take(row, number, &file.work);
                let cost = row.cost();
                Ok(Some((row, cost)))
            },
            |row| check_row::check(row, target.as_ref()),
            |checked| {
                report.rows += 1;
                report.raw_rows += u64::from(checked.raw);
                report.stored_bytes += checked.stored_bytes;
                report.object_bytes += checked.object_bytes;
                for finding in checked.findings {
                    report.add(finding);
                }
                if let Some(progress) = progress {
                    progress(report.rows, total);
                }
                Ok(())
            },
        )
    }

    fn found(&mut self, class: FindingClass, detail: String) {
        let finding = Finding { class, row: None, key: None, detail };
        self.report.add(finding);
    }

    fn end_with(mut self, error: ReadError) -> Report {
        self.add_error(error);
        self.report
    }

    /// Adds an error that prevents reading the file, or the rest of it.
    fn add_error(&mut self, error: ReadError) {
        let (class, detail) = match &error.fault {
            Fault::TooSmall(size) => {
                (FindingClass::TooSmall, format!("{size} bytes: MIOpen takes the file for absent"))
            }
            Fault::NotSqlite => (FindingClass::NotSqlite, "it is no SQLite 3 file".to_owned()),
            Fault::Unfinished(journal) => {
                let journal = journal.display();
                let detail =
                    format!("`{journal}` has what a program did not finish to write to the file");
                (FindingClass::Journal, detail)
            }
            Fault::Sqlite(source) => (FindingClass::Unreadable, source.to_string()),
            Fault::Runaway => {
                let detail = "its rows have no end, or hold far more than the file does";
                (FindingClass::Unreadable, detail.to_owned())
            }
            Fault::Statement(statement) => {
                let detail = format!("there is `{statement}`, which is no plain table");
                (FindingClass::Schema, detail)
            }
            _ => (FindingClass::Unreadable, error.to_string()),
        };
        self.found(class, detail);
    }
}

/// The first table or index with a computed part: a generated column, an
/// expression, or the condition of an index.
const COMPUTED: &str = "SELECT min(name) FROM pragma_table_list AS list WHERE schema = 'main' AND \
    (EXISTS (SELECT 1 FROM pragma_table_xinfo(list.name) WHERE hidden > 1) \
    OR EXISTS (SELECT 1 FROM pragma_index_list(list.name) AS i WHERE partial \
        OR EXISTS (SELECT 1 FROM pragma_index_xinfo(i.name) WHERE cid = -2)))";
