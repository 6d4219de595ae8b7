//! Collects what programs request from MIOpen: kernel keys from logs, kdbs and
//! earlier harvests, and MIOpenDriver's commands from logs.
//!
//! Inputs of any size are read as streams, several files in parallel; only the
//! keys are kept in memory. Equal inputs give equal harvests, whatever their
//! order and the number of threads.
//!
//! - [`list`] finds the files in the given paths.
//! - [`harvest()`] collects keys, [`commands()`] collects commands.
//! - [`read_lines()`] unpacks a text for other uses.
//! - [`run_log`] summarizes a program's log while the program runs.
//! - [`script`] writes commands as a shell script that makes MIOpen tune, or the
//!   environment in which a program does.
//!
//! ```
//! use gfxpack_harvest::{Options, harvest, list};
//!
//! let directory = tempfile::tempdir()?;
//! let log = directory.path().join("keys.jsonl");
//! std::fs::write(&log, r#"{"kernel_name": "conv.cl.o", "kernel_args": " -DX=1 -mcpu=gfx906"}"#)?;
//! let (keys, _) = harvest(&list(&[log])?, &Options::default())?;
//! assert_eq!(keys[0].key.kernel_name, "conv.cl.o");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod commands;
mod gather;
mod input;
pub mod log;
mod open;
mod read;
mod report;
pub mod run_log;
pub mod script;

pub use commands::{SeenCommand, commands};
pub use gather::harvest;
pub use input::{Input, list};
pub use log::LineError;
pub use open::{Options, packed_kdb, pieces, read_lines};
pub use read::key_begins;
pub use report::{ContentKind, FileReport, Skipped, Skips};
