//! Starts programs with limits, reads their output, measures their use of resources and the
//! machine's free memory, and records the file accesses of a program and everything that it starts.
//! Also starts the system's tools, which the user may have to install.
//!
//! This crate recognises compilers only by their arguments, and knows nothing of plans, jobs and
//! stores.
//!
//! ```
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("answer");
//! gfxpack_process::write_atomic(&file, &[b"whole", b", or not there"])?;
//! assert_eq!(std::fs::read(&file)?, b"whole, or not there");
//! # Ok::<(), std::io::Error>(())
//! ```

mod cache_file;
mod file_digest;
mod foreground;
mod memory;
mod pipe;
pub mod preload;
mod program;
mod scratch_dir;
mod system_tool;
mod usage;
pub mod watch;

pub use cache_file::{
    create_dir_as_above, is_not_found, note_use, read_sealed, touch, write_atomic, write_atomic_by,
    write_output, write_sealed,
};
pub use file_digest::{FileDigests, Identity, Timestamp};
pub use foreground::Foreground;
pub use memory::{available_memory, kill_children, resident_of_jobs};
pub use pipe::{Capture, OUTPUT_LIMIT, wait_readable, was_cut};
pub use program::{
    Cancel, Group, Output, Program, ProgramEnd, TICK, ended, find_in_path, fixed, interrupted,
    open_many, run,
};
pub use scratch_dir::{ScratchDir, scratch_error, temporary_dir};
pub use system_tool::{RunningTool, SystemTool, ToolOutput};
pub use usage::Usage;
