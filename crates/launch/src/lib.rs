//! Starts compilers as cheaply as possible without changing their output: by the driver, or without
//! it, forked from a loaded compiler, with precompiled headers.
//!
//! [`Session::run_driver`] runs a [`Command`] in the directories of [`RunPaths`] by its driver, and
//! returns a [`CompilerRun`]; [`Session::run_shortcut`] takes the shortcuts. None is taken if it might
//! change the output.
//!
//! This crate knows nothing of plans, jobs, object stores and names of kernels.

mod arguments;
mod drivers;
mod fork_server;
mod headers;
mod launcher;
mod session;
mod template;
mod wrappers;

pub use arguments::{depfile_paths, searched};
pub use drivers::{Direct, DriverCommands, Drivers};
pub use headers::HeaderOptions;
pub use launcher::{Command, CompilerRun, HeaderInputs, HeaderSearch, RunPaths, SourceFiles};
pub use session::Session;
pub use template::{CommandTemplate, Define, Defines, TemplateArg, TemplateValues};
