//! A performance database in SQLite: problems in one table, the parameters of
//! solvers in another. Lists the problems, with or without parameters.
//!
//! Source: ROCm/MIOpen 2d1fd997a, `SQLitePerfDb` in sqlite_db.cpp and
//! `SQLiteSerializable` in sqlite_db.hpp.

use std::path::Path;

use gfxpack_model::{Error, Result};
use gfxpack_sqlite::{filled_log, unplayed_journal};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

use crate::name::Storage;
use crate::read::{self, unfit, unreadable};

/// Largest size of a value in bytes, and largest number of columns of a
/// problem.
const MAX_VALUE_BYTES: u64 = 1 << 20;
const MAX_COLUMNS: i32 = 200;

/// Columns of the table of problems, in the order of the keys of text
/// databases.
///
/// Source: ROCm/MIOpen 2d1fd997a, `Visit` in conv/problem_description.hpp, from
/// which both forms are made.
const COLUMNS: &str = "spatial_dim in_channels in_h in_w in_d fil_h fil_w fil_d out_channels \
    batchsize pad_h pad_w pad_d conv_stride_h conv_stride_w conv_stride_d dilation_h dilation_w \
    dilation_d bias group_count layout data_type direction";

/// Calls `each` for every problem of a performance database in SQLite, with its
/// key in a text database, `2x64x56x56x1x…xNCHWxFP32xF`, in the order in which
/// they were added. Only one is in memory at a time.
///
/// # Errors
/// If the file can't be read, or has anything but convolutions.
pub fn sqlite_keys(path: &Path, mut each: impl FnMut(&str)) -> Result {
    let connection = connect(path)?;
    let text = format!("SELECT {} FROM config ORDER BY id", key_expression(&connection, path)?);
    let mut read = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare(&text)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_str()?);
        }
        Ok(())
    };
    read().map_err(damaged(path))
}

/// Calls `each` for every problem with parameters of a performance database in
/// SQLite, with its line in a text database, without newline:
/// `2x64x56x56x1x…xNCHWxFP32xF=ConvAsm1x1U:1,16,…;…`. Only one is in memory at
/// a time.
pub fn sqlite_lines(path: &Path, mut each: impl FnMut(&str)) -> Result {
    let connection = connect(path)?;
    let text = format!(
        "SELECT config.id, {}, solver, params FROM config \
         JOIN perf_db ON perf_db.config = config.id ORDER BY config.id, solver",
        key_expression(&connection, path)?
    );
    let mut read = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare(&text)?;
        let mut rows = statement.query(())?;
        let (mut last, mut line) = (None, String::new());
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if last.replace(id) == Some(id) {
                line.push(';');
            } else {
                if !line.is_empty() {
                    each(&line);
                }
                line.clear();
                line.push_str(row.get_ref(1)?.as_str()?);
                line.push('=');
            }
            line.push_str(row.get_ref(2)?.as_str()?);
            line.push(':');
            line.push_str(row.get_ref(3)?.as_str()?);
        }
        if !line.is_empty() {
            each(&line);
        }
        Ok(())
    };
    read().map_err(damaged(path))
}

/// The error of a file that SQLite can't read.
fn damaged(path: &Path) -> impl Fn(rusqlite::Error) -> Error {
    move |source| {
        let hint = "fetch it again: it may be damaged";
        Error::usage(format!("failed to read `{}`", path.display()), hint).caused_by(source)
    }
}

/// Opens a connection that can only read and trusts nothing in the file. If
/// there is no write-ahead log, it creates nothing beside the file.
fn connect(path: &Path) -> Result<Connection> {
    read::open(path, Storage::Sqlite)?;
    // Logs and journals are named after the file, not after a link to it.
    let absolute = std::fs::canonicalize(path).map_err(unreadable(path))?;
    if let Some(journal) = unplayed_journal(&absolute) {
        // A program was stopped while it wrote, or is writing: without its journal
        // the file is incomplete.
        return Err(unfit(
            path,
            format_args!("`{}` has what a program did not finish to write", journal.display()),
            format_args!(
                "let the program that uses it end, then run \
                 `sqlite3 {} 'pragma wal_checkpoint(truncate)'`",
                path.display()
            ),
        ));
    }
    let open = || {
        let connection = gfxpack_sqlite::open(&absolute, filled_log(&absolute).is_none())?;
        gfxpack_sqlite::harden(&connection, MAX_VALUE_BYTES)?;
        connection.set_limit(Limit::SQLITE_LIMIT_COLUMN, MAX_COLUMNS)?;
        // A view could take any time to evaluate; MIOpen creates none.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        Ok(connection)
    };
    open().map_err(damaged(path))
}

/// The SQL expression that makes the key of a text database from a row of
/// `config`. That `id` is the table's primary key, as in MIOpen's files, bounds joins
/// with `perf_db`: each row of parameters belongs to one problem at most.
fn key_expression(connection: &Connection, path: &Path) -> Result<String> {
    let schema = |what: &str| {
        let hint = "it needs the tables config and perf_db, as MIOpen's own databases have them";
        unfit(path, what, hint)
    };
    let keys = "SELECT min(name = 'id' AND upper(type) = 'INTEGER') \
                FROM pragma_table_info('config') WHERE pk";
    let is_key: Option<bool> =
        connection.query_row(keys, (), |row| row.get(0)).map_err(damaged(path))?;
    if is_key != Some(true) {
        return Err(schema("the table `config` is missing, or has no `id INTEGER PRIMARY KEY`"));
    }
    let columns = || -> rusqlite::Result<Vec<String>> {
        let names = "SELECT name FROM pragma_table_info('config')";
        connection.prepare(names)?.query_map((), |row| row.get(0))?.collect()
    };
    let existing = columns().map_err(damaged(path))?;
    let is_missing = |needed: &&str| !existing.iter().any(|one| one == needed);
    if let Some(needed) = COLUMNS.split(' ').find(is_missing) {
        return Err(schema(&format!("the table `config` has no column `{needed}`")));
    }
    let names = COLUMNS.split(' ').map(|name| format!("CAST(config.`{name}` AS TEXT)"));
    Ok(names.collect::<Vec<_>>().join(" || 'x' || "))
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
            let error = key_expression(&connection, &path).expect_err(columns);
            assert!(error.to_string().contains("INTEGER PRIMARY KEY"), "{error}");
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
        assert!(error.to_string().ends_with("did not finish to write"), "{error}");
    }

    #[test]
    fn text_is_not_sqlite() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.db");
        std::fs::write(&path, "a=A:1\n").expect("written");
        let error = connect(&path).expect_err("text");
        assert!(error.to_string().ends_with("it is no SQLite file"), "{error}");
    }

    #[test]
    fn problems_are_listed_as_keys_of_text_databases() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("gfx906_60.db");
        let connection = Connection::open(&path).expect("opened");
        let kind = |name: &str| match name {
            "layout" | "data_type" | "direction" => "TEXT",
            _ => "INT",
        };
        // Other versions of MIOpen have their columns in another order.
        let defined: Vec<String> =
            COLUMNS.rsplit(' ').map(|name| format!("`{name}` {} NOT NULL", kind(name))).collect();
        connection
            .execute_batch(&format!(
                "CREATE TABLE config (`id` INTEGER PRIMARY KEY, {})",
                defined.join(",")
            ))
            .expect("a table");
        let keys = [
            "2x64x56x56x1x1x1x1x256x32x0x0x0x1x1x0x1x1x0x0x1xNCHWxFP32xF",
            "2x3x7x8x1x3x5x1x9x10x1x2x0x2x3x0x1x1x0x0x3xNHWCxFP16xB",
        ];
        let places = ["?"; 24].join(",");
        for key in keys {
            let insert =
                format!("INSERT INTO config ({}) VALUES ({places})", COLUMNS.replace(' ', ","));
            let values: Vec<&str> = key.split('x').collect();
            connection.execute(&insert, rusqlite::params_from_iter(values)).expect("a row");
        }
        let mut read = Vec::new();
        sqlite_keys(&path, |key| read.push(key.to_owned())).expect("read");
        assert_eq!(read, keys);
        connection
            .execute_batch(
                "CREATE TABLE perf_db (id INTEGER PRIMARY KEY, solver TEXT, config INTEGER, params TEXT);
                 INSERT INTO perf_db (solver, config, params) VALUES
                 ('ConvB', 2, '4'), ('ConvAsm1x1U', 1, '1,16'), ('ConvA', 2, '2,3'), ('ConvC', 9, '5')",
            )
            .expect("parameters");
        let mut lines = Vec::new();
        sqlite_lines(&path, |line| lines.push(line.to_owned())).expect("read");
        assert_eq!(
            lines,
            [format!("{}=ConvAsm1x1U:1,16", keys[0]), format!("{}=ConvA:2,3;ConvB:4", keys[1]),]
        );
        connection.execute_batch("ALTER TABLE config DROP COLUMN group_count").expect("dropped");
        let error = sqlite_keys(&path, |_| {}).expect_err("a column is missing");
        assert!(error.to_string().contains("`group_count`"), "{error}");
    }
}
