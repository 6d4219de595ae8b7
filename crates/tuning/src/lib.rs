//! MIOpen's tuning databases: the best parameters of a solver for a problem
//! (performance database), and the solvers for a problem with their speed (find
//! database). This crate reads them, checks them, merges a user's into the
//! system's, and writes them so that equal contents are equal bytes.
//!
//! They are text, one line per problem; of performance databases in SQLite, which
//! MIOpen's sources have, the problems can be read.
//! `docs/tuning.md` describes the format. This crate knows records, files and
//! their names. It knows nothing of kernels, packages, or system directories.
//!
//! - [`ModelName`] and [`check_model()`] parse names of heuristic models and
//!   check the files.
//! - [`DatabaseName`] parses the names of database files.
//! - [`RecordReader`] reads text as a stream, as MIOpen would.
//! - [`Database`] holds a text database.
//! - [`sqlite_keys()`] lists the problems of one in SQLite.
//! - [`merge()`] merges files, [`lint()`] reports problems of a file.
//!
//! ```
//! use gfxpack_tuning::{DatabaseKind, DatabaseName};
//!
//! let name = DatabaseName::from_path("gfx90a68.HIP.fdb.txt".as_ref()).expect("a name of MIOpen's");
//! assert_eq!(name.kind, DatabaseKind::Find);
//! assert_eq!(name.target.to_string(), "gfx90a@104");
//! ```

mod database;
mod heuristic_model;
mod lint;
mod merge;
mod name;
mod read;
mod record;
mod sqlite;

pub use database::{Database, Overlaid};
pub use heuristic_model::{ModelName, check_model};
pub use lint::{Finding, Linted, Severity, lint};
pub use merge::{Merged, merge};
pub use name::{DatabaseKind, DatabaseName, DatabaseOwner, Storage};
pub use read::{Line, RecordReader};
pub use record::{DbRecord, RecordFault};
pub use sqlite::{sqlite_keys, sqlite_lines};
