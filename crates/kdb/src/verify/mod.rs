//! Checks everything that can be wrong with a kdb, and does not stop at the
//! first problem.

pub(crate) mod check_row;
pub(crate) mod report;

use std::path::Path;

use gfxpack_model::{KernelKey, Target, target_of_kdb};
use rusqlite::Connection;

use crate::error::ReadError;
use crate::header::Journal;
use crate::key::key_check;
use crate::layout::Layout;
use crate::open::{self, Probe};
use crate::opened::Opened;
use crate::parallel;
use crate::progress::Progress;
use crate::schema::{
    COLUMNS, KEY_COLUMNS, MAX_OBJECT_BYTES, SELECT_ALL, TABLE, key_index, missing_column,
};
use crate::text_encoding::Encoding;
use crate::verify::check_row::UncheckedRow;
use crate::verify::report::{Finding, FindingClass, Report};
use crate::work_budget::WorkBudget;

/// Options of a verification.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct VerifyOptions<'a> {
    /// Number of findings to list; further ones are only counted.
    pub max_findings: usize,
    /// Bytes of code objects in memory at a time.
    pub window_bytes: u64,
    /// Largest code object accepted, in bytes.
    pub max_object_bytes: u64,
    /// Called on the calling thread after every row.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Called before every row to ask whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl VerifyOptions<'_> {
    /// The defaults, with another limit for code objects.
    #[must_use]
    pub fn with_max_object_bytes(max_object_bytes: u64) -> Self {
        Self { max_object_bytes, ..Self::default() }
    }
}

impl Default for VerifyOptions<'_> {
    fn default() -> Self {
        Self {
            max_findings: 1000,
            window_bytes: 64 << 20,
            max_object_bytes: MAX_OBJECT_BYTES,
            progress: None,
            cancelled: None,
        }
    }
}

/// Verifies a kdb: SQLite's integrity check, journal mode, table and index; of
/// every row the key, the blob, the hash and the code object's gfx target.
///
/// Code objects must suit `expected`, or else the target in the file's name,
/// and always the device in their own key. The window bounds the memory, not
/// the size of the file. Work runs in the current rayon pool.
///
/// # Errors
/// [`ReadError::Io`] or [`ReadError::NotAFile`] if there is nothing to verify;
/// [`ReadError::Interrupted`]. All other problems are in the report.
pub fn verify(
    path: &Path,
    expected: Option<&Target>,
    options: &VerifyOptions<'_>,
) -> Result<Report, ReadError> {
    let target = expected.cloned().or_else(|| target_of_kdb(path));
    let mut run = Verification { path, options, report: Report { target, ..Report::default() } };
    let Probe { header, data_bytes, .. } = match open::probe(path) {
        Ok(probe) => probe,
        Err(error @ (ReadError::Io { .. } | ReadError::NotAFile { .. })) => return Err(error),
        Err(error) => return Ok(run.end_with(error)),
    };
    if header.journal != Journal::Delete {
        let mode = header.journal.name();
        run.found(FindingClass::JournalMode, format!("the journal mode is `{mode}`, not `delete`"));
    }
    match Encoding::read(path)? {
        Encoding::Utf8 => {}
        other => {
            let detail = format!("the text is {}, not UTF-8", other.name());
            run.found(FindingClass::Encoding, detail);
        }
    }
    match run.content(data_bytes) {
        Err(error @ ReadError::Interrupted { .. }) => Err(error),
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
        let work = WorkBudget::new(bytes, self.options.max_object_bytes);
        let (connection, budget) = open::connect(self.path, bytes, work.max_object_bytes)?;
        let file = Opened::new(self.path, connection, budget, work)?;
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

    /// Compares a table's columns and index with MIOpen's. For the dense
    /// layout's view SQLite knows only names.
    fn schema(&mut self, file: &Opened) -> Result<(), ReadError> {
        let sqlite = |source| file.sqlite(source);
        let found = columns(file.connection()).map_err(sqlite)?;
        if found.is_empty() {
            self.found(FindingClass::Schema, format!("there is no table {TABLE}"));
            return Ok(());
        }
        if file.layout == Layout::Dense {
            for (sql, what) in COUNT_STRAY {
                let count = file.connection().query_row(sql, (), |row| row.get::<_, i64>(0));
                let count = count.map_err(sqlite)?;
                if count > 0 {
                    self.found(FindingClass::Integrity, format!("{count} {what}"));
                }
            }
            let damaged = damaged_keys(file)?;
            if damaged > 0 {
                let detail = format!("{damaged} keys do not match their checksums");
                self.found(FindingClass::Integrity, detail);
            }
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
        let VerifyOptions { max_findings, window_bytes, max_object_bytes, progress, cancelled } =
            *self.options;
        let total = progress.map_or(Ok(0), |_| file.count())?;
        let limit = i64::try_from(max_object_bytes).unwrap_or(i64::MAX);
        let mut statement = file.prepare(SELECT_ALL)?;
        let mut rows = statement.query([limit]).map_err(|source| file.sqlite(source))?;
        let target = self.report.target.clone();
        let report = &mut self.report;
        let mut number = 0;
        parallel::in_order(
            window_bytes,
            || {
                if cancelled.is_some_and(|cancelled| cancelled()) {
                    return Err(ReadError::Interrupted { path: file.path.clone() });
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
                    report.add(finding, max_findings);
                }
                if let Some(progress) = progress {
                    progress(Progress::rows(report.rows, total));
                }
                Ok(())
            },
        )
    }

    fn found(&mut self, class: FindingClass, detail: String) {
        let finding = Finding { class, row: None, key: None, detail };
        self.report.add(finding, self.options.max_findings);
    }

    fn end_with(mut self, error: ReadError) -> Report {
        self.add_error(error);
        self.report
    }

    /// Adds an error that prevents reading the file, or the rest of it.
    fn add_error(&mut self, error: ReadError) {
        let (class, detail) = match error {
            ReadError::TooSmall { size, .. } => {
                (FindingClass::TooSmall, format!("{size} bytes: MIOpen takes the file for absent"))
            }
            ReadError::NotSqlite { .. } => {
                (FindingClass::NotSqlite, "it is no SQLite 3 file".to_owned())
            }
            ReadError::Unfinished { journal, .. } => {
                let journal = journal.display();
                let detail =
                    format!("`{journal}` has what a program did not finish to write to the file");
                (FindingClass::Journal, detail)
            }
            ReadError::Sqlite { source, .. } => (FindingClass::Unreadable, source.to_string()),
            ReadError::Runaway { .. } => {
                let detail = "its rows have no end, or hold far more than the file does";
                (FindingClass::Unreadable, detail.to_owned())
            }
            ReadError::Statement { statement, .. } => {
                let detail = format!("there is `{statement}`, which is no plain table");
                (FindingClass::Schema, detail)
            }
            other => (FindingClass::Unreadable, other.to_string()),
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

/// Keys whose object is missing, and objects without a key.
const COUNT_STRAY: [(&str, &str); 2] = [
    (
        "SELECT count(*) FROM kern_keys WHERE object NOT IN (SELECT id FROM kern_objects)",
        "keys lead to an object that is not there",
    ),
    (
        "SELECT count(*) FROM kern_objects WHERE id NOT IN (SELECT object FROM kern_keys)",
        "objects belong to no key",
    ),
];

/// A column's name, declared type, and whether it is NOT NULL.
type Column = (String, String, bool);

/// The columns of `kern_db`.
fn columns(connection: &Connection) -> Result<Vec<Column>, rusqlite::Error> {
    let mut statement = connection.prepare(&format!("PRAGMA table_info({TABLE})"))?;
    let column =
        |row: &rusqlite::Row<'_>| Ok((row.get("name")?, row.get("type")?, row.get("notnull")?));
    statement.query_map((), column)?.collect()
}

/// Counts the keys of the dense layout that do not match their check value.
fn damaged_keys(file: &Opened) -> Result<u64, ReadError> {
    let mut damaged = 0;
    file.for_each("SELECT name, args, key_check FROM kern_keys", (), |row| {
        let text = |index| row.get_ref(index).ok()?.as_str().ok().map(str::to_owned);
        let holds = || {
            let key = KernelKey { kernel_name: text(0)?, kernel_args: text(1)? };
            Some(row.get_ref(2).ok()?.as_blob().ok()? == key_check(&key))
        };
        damaged += u64::from(holds() != Some(true));
        Ok::<(), ReadError>(())
    })?;
    file.work.restart();
    Ok(damaged)
}
