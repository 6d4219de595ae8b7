//! Errors of reading and writing a kdb, and what the user can do about them.

mod read;
mod row;
mod write;

pub use read::ReadError;
#[cfg(feature = "tools")]
pub(crate) use read::{JOURNAL_HINT, JOURNAL_MODE_HINT};
pub use row::RowError;
pub use write::WriteError;
