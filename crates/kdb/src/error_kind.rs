//! Classifies errors for programs that can go on without the file.

use std::io;

use rusqlite::ErrorCode;

/// The kind of an error, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KdbErrorKind {
    /// The file does not exist.
    Absent,
    /// The operating system refuses, the path is not a regular file, or the
    /// file can't be read without changing it.
    Denied,
    /// Between 0 and 511 bytes.
    TooSmall,
    /// Not an SQLite file, or damaged as a whole.
    Corrupt,
    /// An SQLite file with another table or other columns.
    Schema,
    /// In a journal mode that can't be used at this place.
    Journal,
    /// Others kept it locked for longer than the caller was ready to wait.
    Busy,
    /// The disk is full, or a quota is spent.
    Full,
    /// One row is damaged; the file is not.
    Row,
    /// The caller's input: a key or code object that no kdb accepts.
    Input,
}

impl KdbErrorKind {
    /// Classifies an error of the file system.
    pub(crate) fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full,
            _ => Self::Denied,
        }
    }

    /// Classifies an error of SQLite.
    ///
    /// Source: SQLite, "Result and Error Codes".
    pub(crate) fn from_sqlite(error: &rusqlite::Error) -> Self {
        use rusqlite::Error;
        // A value of an unexpected type, such as text in the schema that is not
        // UTF-8. No program that writes kdbs writes this.
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
            // The last three: a statement that does not fit the table, or a row
            // that SQLite reports as a duplicate right after the old one was
            // deleted. Then the schema or an index is damaged.
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
        assert_eq!(KdbErrorKind::from_sqlite(&asked.unwrap_err()), KdbErrorKind::Corrupt);
    }
}
