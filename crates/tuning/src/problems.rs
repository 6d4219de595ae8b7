//! The problems of a performance database in SQLite, with parameters or
//! without.

use std::path::Path;

use crate::error::ReadError;
use crate::sqlite::{columns, connect, quoted};

/// Columns of the table of problems in the order in which keys of text
/// databases have them.
///
/// Source: ROCm/MIOpen 2d1fd997a, `Visit` in conv/problem_description.hpp,
/// which both forms are made from.
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

/// Gives each problem of a performance database in SQLite as the key that it
/// has in a text database, `2x64x56x56x1x…xNCHWxFP32xF`, in the order in which
/// they were added. Takes the memory of one.
///
/// # Errors
/// [`ReadError`]; in particular [`ReadError::Schema`] where the file holds
/// anything but convolutions.
pub fn sqlite_keys(path: &Path, mut each: impl FnMut(&str)) -> Result<(), ReadError> {
    let connection = connect(path)?;
    let sqlite = |source| ReadError::Sqlite { path: path.to_owned(), source };
    let there = columns(&connection, "config").map_err(sqlite)?;
    for needed in COLUMNS {
        if !there.iter().any(|column| column.name == needed) {
            let what = format!("the table `config` is missing, or has no column `{needed}`");
            return Err(ReadError::Schema { path: path.to_owned(), what });
        }
    }
    let names = COLUMNS.map(|name| format!("CAST({} AS TEXT)", quoted(name)));
    let mut read = || -> Result<(), rusqlite::Error> {
        let text = format!("SELECT {} FROM config ORDER BY id", names.join(" || 'x' || "));
        let mut statement = connection.prepare(&text)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_str()?);
        }
        Ok(())
    };
    read().map_err(sqlite)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn problems_are_given_as_the_keys_of_text_databases() {
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
        connection.execute_batch("ALTER TABLE config DROP COLUMN group_count").expect("dropped");
        let error = sqlite_keys(&path, |_| {}).expect_err("a column is missing");
        assert!(error.to_string().contains("`group_count`"), "{error}");
    }
}
