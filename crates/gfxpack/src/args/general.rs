//! Options that every command has.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ColorChoice};

#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "General")]
pub(crate) struct Common {
    /// Write messages for programs to FILE, as JSON lines
    ///
    /// They are written as they come; - is stdout, in place of the text for people.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print only errors and warnings
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more; twice for diagnostics
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Colours; with auto, on a terminal where NO_COLOR is not set
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_enum,
        default_value_t,
        value_name = "WHEN"
    )]
    pub(crate) color: ColorChoice,
}
