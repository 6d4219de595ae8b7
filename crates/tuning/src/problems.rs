//! Lists the problems of a performance database in SQLite, with or without
//! parameters.

use std::path::Path;

use rusqlite::Connection;

use crate::error::ReadError;
use crate::sqlite::{connect, problem_columns};

/// Columns of the table of problems, in the order of the keys of text
/// databases.
///
/// Source: ROCm/MIOpen 2d1fd997a, `Visit` in conv/problem_description.hpp, from
/// which both forms are made.
const COLUMNS: [&str; 24] = [
    "spatial_dim",
    "in_channels",
    "in_h",
    "in_w",
    "in_d",
    "fil_h",
    "fil_w",
    "fil_d",
    "out_channels",
    "batchsize",
    "pad_h",
    "pad_w",
    "pad_d",
    "conv_stride_h",
    "conv_stride_w",
    "conv_stride_d",
    "dilation_h",
    "dilation_w",
    "dilation_d",
    "bias",
    "group_count",
    "layout",
    "data_type",
    "direction",
];

/// Calls `each` for every problem of a performance database in SQLite, with its
/// key in a text database, `2x64x56x56x1x…xNCHWxFP32xF`, in the order in which
/// they were added. Only one is in memory at a time.
///
/// # Errors
/// [`ReadError`]; [`ReadError::Schema`] if the file has anything but
/// convolutions.
pub fn sqlite_keys(path: &Path, mut each: impl FnMut(&str)) -> Result<(), ReadError> {
    let connection = connect(path)?;
    let sqlite = |source| ReadError::Sqlite { path: path.to_owned(), source };
    let key = key_expression(&connection, path)?;
    let mut read = || -> Result<(), rusqlite::Error> {
        let text = format!("SELECT {key} FROM config ORDER BY id");
        let mut statement = connection.prepare(&text)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_str()?);
        }
        Ok(())
    };
    read().map_err(sqlite)
}

/// Calls `each` for every problem with parameters of a performance database in
/// SQLite, with its line in a text database, without newline:
/// `2x64x56x56x1x…xNCHWxFP32xF=ConvAsm1x1U:1,16,…;…`. Only one is in memory at
/// a time.
///
/// # Errors
/// As [`sqlite_keys`].
pub fn sqlite_lines(path: &Path, mut each: impl FnMut(&str)) -> Result<(), ReadError> {
    let connection = connect(path)?;
    let sqlite = |source| ReadError::Sqlite { path: path.to_owned(), source };
    let key = key_expression(&connection, path)?;
    let mut read = || -> Result<(), rusqlite::Error> {
        let text = format!(
            "SELECT config.id, {key}, solver, params FROM config \
             JOIN perf_db ON perf_db.config = config.id ORDER BY config.id, solver"
        );
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
    read().map_err(sqlite)
}

/// The SQL expression that makes the key of a text database from a row of
/// `config`.
fn key_expression(connection: &Connection, path: &Path) -> Result<String, ReadError> {
    let existing = problem_columns(connection, path)?;
    for needed in COLUMNS {
        if !existing.iter().any(|column| column == needed) {
            let what = format!("the table `config` has no column `{needed}`");
            return Err(ReadError::Schema { path: path.to_owned(), what });
        }
    }
    let names = COLUMNS.map(|name| format!("CAST(config.`{name}` AS TEXT)"));
    Ok(names.join(" || 'x' || "))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            COLUMNS.iter().rev().map(|name| format!("`{name}` {} NOT NULL", kind(name))).collect();
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
        let places = vec!["?"; COLUMNS.len()].join(",");
        for key in keys {
            let insert = format!("INSERT INTO config ({}) VALUES ({places})", COLUMNS.join(","));
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
