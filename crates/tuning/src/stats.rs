//! Statistics of a database.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use crate::error::ReadError;
use crate::name::{DatabaseKind, DatabaseName, Storage};
use crate::read::RecordReader;
use crate::record::FindResult;
use crate::sqlite::SqliteDatabase;

/// Statistics of a database.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Number of problems.
    pub records: u64,
    /// Number of values of solvers.
    pub values: u64,
    /// Number of problems for each solver.
    pub solvers: BTreeMap<String, u64>,
    /// In a find database: for how many problems each solver is the fastest.
    pub fastest: BTreeMap<String, u64>,
    /// Largest workspace in a find database, in bytes.
    pub workspace: u64,
}

/// Counts what MIOpen would read from the file, which is described by `name`.
///
/// # Errors
/// [`ReadError`].
pub fn stats(path: &Path, name: &DatabaseName) -> Result<Stats, ReadError> {
    let mut stats = Stats::default();
    if name.storage == Storage::Sqlite {
        let database = SqliteDatabase::read(path)?;
        stats.records = database.problems.len() as u64;
        database.problems.values().flatten().for_each(|(solver, _)| stats.count(solver));
        return Ok(stats);
    }
    // Of records with one key only the first counts, so keys are kept.
    let mut keys = HashSet::new();
    let mut reader = RecordReader::open(path, name.kind)?;
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    while let Some(line) = reader.next_line().map_err(io)? {
        let Some(record) = line.record else { continue };
        if !keys.insert(record.key.into_boxed_str()) {
            continue;
        }
        stats.records += 1;
        let mut fastest: Option<(f32, &String)> = None;
        for (solver, values) in &record.solvers {
            stats.count(solver);
            let Some(found) = FindResult::parse(values).filter(|_| name.kind == DatabaseKind::Find)
            else {
                continue;
            };
            stats.workspace = stats.workspace.max(found.workspace);
            if fastest.is_none_or(|(time, _)| found.time < time) {
                fastest = Some((found.time, solver));
            }
        }
        if let Some((_, solver)) = fastest {
            *stats.fastest.entry(solver.to_owned()).or_default() += 1;
        }
    }
    Ok(stats)
}

impl Stats {
    fn count(&mut self, solver: &str) {
        self.values += 1;
        *self.solvers.entry(solver.to_owned()).or_default() += 1;
    }
}
