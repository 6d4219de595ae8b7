//! The kernel database (kdb) that MIOpen loads compiled kernels from: an
//! SQLite file with one row per kernel key. Writes it, reads it, checks it.
//!
//! The bytes are described in `docs/kdb-format.md`. This crate knows the
//! table, bzip2, MD5 and row order; it knows no compiler, no package, and not
//! which directory is the system's.
//!
//! - [`write()`] builds a whole file from keys in canonical order; equal input
//!   gives equal bytes.
//! - [`Reader`] looks up, lists and streams, and never writes beside the file.
//! - [`UserKdb`] is the one file that is written to while others use it: the
//!   user's own cache.
//! - [`verify()`] goes through everything a file can have wrong and reports it.

mod check_row;
mod codec;
mod copy;
mod cursor;
mod diff;
mod error;
mod fault;
mod header;
mod holes;
mod info;
mod layout;
mod live;
mod lock;
mod merge;
mod open;
mod origin;
mod pipeline;
mod read;
mod report;
mod row;
mod salvage;
mod schema;
mod second_look;
mod sink;
mod split;
mod stats;
mod temp;
mod turn;
mod usage;
mod user;
mod verify;
mod work;
mod write;

pub use copy::{CopyOptions, convert};
pub use diff::{Change, Differences, diff};
pub use error::{CopyError, ReadError, RowError, WriteError};
pub use fault::Fault;
pub use header::{Header, Journal};
pub use info::Info;
pub use layout::Layout;
pub use live::LiveKdb;
pub use merge::{Conflict, Merged, merge};
pub use origin::Origin;
pub use read::{Entry, Fetched, ReadOptions, Reader, Record};
pub use report::{Finding, FindingClass, Report};
pub use salvage::{Lost, Repaired, repair};
pub use schema::{MAX_KEY_BYTES, MAX_OBJECT_BYTES, MIN_FILE_BYTES, PAGE_SIZE};
pub use second_look::Damaged;
pub use split::{Part, SplitBy, split};
pub use stats::{Stats, Sums};
pub use user::{UserKdb, UserOptions};
pub use verify::{VerifyOptions, verify};
pub use write::{Blob, Progress, Row, WriteOptions, Written, write};
