//! A performance database in SQLite: problems in one table, the parameters of
//! solvers in another.
//!
//! Source: ROCm/MIOpen 2d1fd997a, `SQLitePerfDb` in sqlite_db.cpp and
//! `SQLiteSerializable` in sqlite_db.hpp.

use std::path::Path;

use gfxpack_sqlite::{filled_log, unplayed_journal};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

use crate::error::ReadError;
use crate::file;
use crate::name::Storage;

/// Largest size of a value in bytes, and largest number of columns of a
/// problem.
const MAX_VALUE_BYTES: u64 = 1 << 20;
const MAX_COLUMNS: i32 = 200;

/// Opens a connection that can only read and trusts nothing in the file. If
/// there is no write-ahead log, it creates nothing beside the file.
pub(crate) fn connect(path: &Path) -> Result<Connection, ReadError> {
    file::open(path, Storage::Sqlite)?;
    // Logs and journals are named after the file, not after a link to it.
    let absolute = std::fs::canonicalize(path)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    if let Some(journal) = unplayed_journal(&absolute) {
        return Err(ReadError::Unfinished { path: path.to_owned(), journal });
    }
    let open = || {
        let connection = gfxpack_sqlite::open(&absolute, filled_log(&absolute).is_none())?;
        gfxpack_sqlite::harden(&connection, MAX_VALUE_BYTES)?;
        connection.set_limit(Limit::SQLITE_LIMIT_COLUMN, MAX_COLUMNS)?;
        // A view could take any time to evaluate; MIOpen creates none.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        Ok(connection)
    };
    open().map_err(|source| ReadError::Sqlite { path: path.to_owned(), source })
}

/// The columns of the table of problems, but for `id`. That it is the primary key, as in MIOpen's
/// files, bounds joins with `perf_db`: each row of parameters belongs to one problem at most.
pub(crate) fn problem_columns(
    connection: &Connection,
    path: &Path,
) -> Result<Vec<String>, ReadError> {
    let sqlite = |source| ReadError::Sqlite { path: path.to_owned(), source };
    let keys = "SELECT min(name = 'id' AND upper(type) = 'INTEGER') \
                FROM pragma_table_info('config') WHERE pk";
    let is_key: Option<bool> = connection.query_row(keys, (), |row| row.get(0)).map_err(sqlite)?;
    if is_key != Some(true) {
        let what = "the table `config` is missing, or has no `id INTEGER PRIMARY KEY`".to_owned();
        return Err(ReadError::Schema { path: path.to_owned(), what });
    }
    let columns = || -> Result<Vec<String>, rusqlite::Error> {
        let names = "SELECT name FROM pragma_table_info('config') WHERE name <> 'id'";
        connection.prepare(names)?.query_map((), |row| row.get(0))?.collect()
    };
    columns().map_err(sqlite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_in_which_parameters_could_belong_to_many_problems_is_rejected() {
        for columns in [
            "id INTEGER, in_h INT",
            "id TEXT PRIMARY KEY, in_h INT",
            "id INTEGER, in_h INT, PRIMARY KEY (id, in_h)",
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("x.db");
            Connection::open(&path)
                .and_then(|connection| {
                    connection.execute_batch(&format!("CREATE TABLE config ({columns})"))
                })
                .expect("a table");
            let connection = connect(&path).expect("SQLite");
            let error = problem_columns(&connection, &path).expect_err(columns);
            assert!(matches!(error, ReadError::Schema { .. }), "{error}");
        }
    }

    #[test]
    fn a_database_with_an_unfinished_transaction_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.db");
        let connection = Connection::open(&path).expect("opened");
        connection.execute_batch("CREATE TABLE config (id INTEGER PRIMARY KEY)").expect("a table");
        let journal = dir.path().join("x.db-journal");
        // What `journal_mode=PERSIST` leaves after a transaction.
        std::fs::write(&journal, [0; 512]).expect("written");
        connect(&path).expect("whole");
        std::fs::write(&journal, b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7").expect("written");
        let error = connect(&path).expect_err("not whole");
        assert!(matches!(error, ReadError::Unfinished { .. }), "{error}");
    }

    #[test]
    fn text_is_not_sqlite() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.db");
        std::fs::write(&path, "a=A:1\n").expect("written");
        let error = connect(&path).expect_err("text");
        assert!(matches!(error, ReadError::OtherStorage { sqlite: false, .. }), "{error}");
    }
}
