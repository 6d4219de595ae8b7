//! What programs asked MIOpen for: kernel keys out of logs, kdbs and earlier
//! harvests, and MIOpenDriver's commands out of logs.
//!
//! Any amount is read as a stream, several files at a time, in a memory that
//! neither their size nor the number of keys decides: what does not fit goes
//! to temporary files, sorted. The same inputs give the same harvest, in
//! whatever order and however many threads.
//!
//! - [`list`] finds the files in what the user named.
//! - [`harvest()`] gathers keys, [`commands()`] gathers commands.
//! - [`read_text()`] unpacks a text for those who look for something else.
//! - [`run_log`] sums up what a program tells while it runs.
//! - [`may_ask_for()`] says which processors a kernel is for.
//! - [`script`] writes commands down so that a shell runs them.
//! - [`settings()`] are the variables with which a program has MIOpen tune.
//!
//! ```
//! use gfxpack_harvest::{HarvestError, Options, harvest, list};
//!
//! let directory = tempfile::tempdir()?;
//! let log = directory.path().join("keys.jsonl");
//! std::fs::write(&log, r#"{"kernel_name": "conv.cl.o", "kernel_args": " -DX=1 -mcpu=gfx906"}"#)?;
//! let mut names = Vec::new();
//! harvest(&list(&[log])?, &Options::default())?.keys.for_each(|record| {
//!     names.push(record.key.kernel_name);
//!     Ok::<(), HarvestError>(())
//! })?;
//! assert_eq!(names, ["conv.cl.o"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod applicability;
mod commands;
mod error;
mod gather;
mod input;
pub mod log;
mod open;
mod read;
mod report;
pub mod run_log;
mod runs;
pub mod script;
mod shared;
mod table;
mod tuning_environment;

pub use applicability::may_ask_for;
pub use commands::{SeenCommand, commands};
pub use error::HarvestError;
pub use gather::{Harvest, Keys, harvest};
pub use input::{Input, list};
pub use open::read_text;
pub use report::{FileReport, Kind, Skip, Skipped};
pub use shared::Options;
pub use tuning_environment::{Setting, settings, unsettings};
