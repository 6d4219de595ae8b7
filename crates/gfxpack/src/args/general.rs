//! Options that every command has.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ColorChoice, ValueEnum};

#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "General")]
pub(crate) struct Common {
    /// Write messages for programs to FILE as they come, one JSON object a line;
    /// - is stdout, in place of the text for people
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print only errors and warnings
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more; twice for diagnostics
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Show progress as bars on a terminal (auto), or as lines only (never)
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) progress: When,
    /// Colours; with auto, on a terminal where NO_COLOR is not set
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// Bars if a terminal can show them, otherwise lines.
    #[default]
    Auto,
    /// Only lines.
    Never,
}
