//! What an error means to a program that can go on without the file.

use std::io;

use rusqlite::ErrorCode;

/// The kind of an error, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// The file is not there.
    Absent,
    /// The operating system refuses, the path is no regular file, or it could
    /// not be read without changing it.
    Denied,
    /// Between 0 and 511 bytes.
    TooSmall,
    /// Not SQLite's, or damaged as a whole.
    Corrupt,
    /// SQLite's, with another table or other columns.
    Schema,
    /// In a journal mode that can't be used where the file is.
    Journal,
    /// Others have it locked for longer than was waited.
    Busy,
    /// The disk is full, or a quota is spent.
    Full,
    /// The file is whole, one row of it is not.
    Row,
    /// The caller's input: a key or code object that no kdb takes.
    Input,
}

impl Fault {
    /// Of an error of the file system.
    pub(crate) fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full,
            _ => Self::Denied,
        }
    }

    /// Of an error of SQLite's.
    ///
    /// Source: SQLite, "Result and Error Codes".
    pub(crate) fn from_sqlite(error: &rusqlite::Error) -> Self {
        use rusqlite::Error;
        // A value that is none of what was asked for: text that is not UTF-8 in
        // the schema, say. Whoever wrote the file wrote no such thing.
        if matches!(
            error,
            Error::FromSqlConversionFailure(..)
                | Error::IntegralValueOutOfRange(..)
                | Error::InvalidColumnType(..)
                | Error::Utf8Error(..)
        ) {
            return Self::Corrupt;
        }
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::SchemaChanged,
            ) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::TooBig) => Self::Input,
            // The last three: a statement that does not fit the table, or a value
            // that is taken for a duplicate right after the old one was deleted.
            // The schema or an index is not what it says.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::Unknown,
            ) => Self::Corrupt,
            _ => Self::Denied,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_is_not_utf8_is_damage() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let asked =
            connection.query_row("SELECT CAST(x'ff' AS TEXT)", [], |row| row.get::<_, String>(0));
        assert_eq!(Fault::from_sqlite(&asked.unwrap_err()), Fault::Corrupt);
    }
}
