//! MIOpen's tuning databases: which parameters a solver runs best with on a
//! problem (performance database), and which solvers there are for it, how
//! fast (find database). Reads them, checks them, merges a user's into the
//! system's, and writes them so that equal contents are equal bytes.
//!
//! Most are text, a line per problem; performance databases may be SQLite. The
//! format is described in `docs/tuning.md`. This crate knows records, files
//! and their names; it knows no kernel, no package, and not which directory is
//! the system's.
//!
//! - [`ModelName`] and [`check_model()`] do for heuristic models what the others do for
//!   databases.
//! - [`DatabaseName`] tells what a file is by its name.
//! - [`RecordReader`] reads text as a stream, as MIOpen would.
//! - [`Database`] holds a text database.
//! - [`sqlite_keys()`] lists the problems of one in SQLite.
//! - [`merge()`] puts files together, [`lint()`] says what is wrong with one.
//!
//! ```
//! use gfxpack_tuning::{DatabaseName, Kind};
//!
//! let name = DatabaseName::from_path("gfx90a68.HIP.fdb.txt".as_ref()).expect("a name of MIOpen's");
//! assert_eq!(name.kind, Kind::Find);
//! assert_eq!(name.target.to_string(), "gfx90a@104");
//! ```

mod database;
mod error;
mod file;
mod heuristic_model;
mod lint;
mod merge;
mod name;
mod problems;
mod read;
mod record;
mod sqlite;
mod stats;

pub use database::{Database, Overlaid};
pub use error::{ReadError, WriteError};
pub use heuristic_model::{ModelName, check_model};
pub use lint::{Finding, Linted, Severity, lint};
pub use merge::{MergeError, Merged, merge};
pub use name::{DatabaseName, Kind, Owner, Storage};
pub use problems::{sqlite_keys, sqlite_lines};
pub use read::{Line, RecordReader};
pub use record::{DbRecord, Fault};
pub use stats::{Stats, stats};
