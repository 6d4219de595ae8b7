//! Arguments of `kdb`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use gfxpack_kdb::{Blob, Conflict};
use gfxpack_model::Target;
use gfxpack_pipeline::options::{
    BLOBS, CacheDir, Choice, LibraryOptions, TargetList, one_of, parse_target, parse_targets,
    whole_file,
};

/// `kdb check`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckKdb {
    /// The kdbs, with the names that MIOpen looks for
    #[arg(required = true, value_name = "KDB")]
    pub(crate) files: Vec<PathBuf>,
    /// Problems: a list or log with MIOpenDriver commands, or a performance or
    /// find database. - reads stdin; repeatable
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) problems: Vec<PathBuf>,
    /// Fail if a line of these can't be read, in place of a warning
    #[arg(long, help_heading = "Input")]
    pub(crate) strict: bool,
    /// The GPU that MIOpen is to find; repeatable, or with commas [default: as
    /// the kdbs' names say, with every known compute-unit count]
    #[arg(long, short, value_name = "TARGET", value_parser = parse_targets)]
    pub(crate) target: Vec<TargetList>,
    /// Processes at once [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) library: LibraryOptions,
    #[command(flatten)]
    pub(crate) cache: CacheDir,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Kdb {
    /// Check everything: database, keys, code objects, hashes, gfx targets
    Verify {
        /// The kdbs
        #[arg(required = true, value_name = "KDB")]
        files: Vec<PathBuf>,
        /// The target the kdbs must serve [default: as their names say]
        #[arg(long, short, value_parser = parse_target)]
        target: Option<Target>,
    },
    /// Run the real libMIOpen on kdbs, with compilers disabled, and report
    /// kernels that problems want and it does not find
    Check(Box<CheckKdb>),
    /// Summarise what is in a kdb
    Info {
        /// The kdbs
        #[arg(required = true, value_name = "KDB")]
        files: Vec<PathBuf>,
    },
    /// List the kernels of a kdb
    List {
        /// The kdb
        #[arg(value_name = "KDB")]
        file: PathBuf,
        /// Only kernels whose name or arguments contain this
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
        /// Print JSON Lines that --keys of `dist` reads
        #[arg(long)]
        keys: bool,
    },
    /// Write the code object of one kernel
    Get {
        /// The kdb
        #[arg(value_name = "KDB")]
        file: PathBuf,
        /// The kernel's name: MIOpenConvDirUni.cl.o
        name: String,
        /// Its arguments exactly as in a log or kdb: with the leading blank if there
        /// is one, and the ` -mcpu=gfx…` at the end
        #[arg(allow_hyphen_values = true)]
        args: String,
        /// Where to write it [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Write the union of several kdbs
    Merge {
        /// The kdbs; also users' kdbs (.ukdb) that no program is using
        #[arg(required = true, value_name = "KDB")]
        files: Vec<PathBuf>,
        /// Where to write it
        #[arg(long, short, value_name = "FILE", value_parser = whole_file())]
        out: PathBuf,
        /// What to do where files have different code objects for one key
        #[arg(long, value_parser = one_of(&CONFLICTS), default_value = "error", value_name = "POLICY")]
        on_conflict: Conflict,
        /// How code objects are stored [default: as they were]
        #[arg(long, value_parser = one_of(&BLOBS), value_name = "FORM")]
        blob: Option<Blob>,
    },
    /// List what two kdbs differ in: keys, and code objects by the hashes beside
    /// them, which `kdb verify` checks
    Diff {
        /// The older kdb
        #[arg(value_name = "OLD")]
        old: PathBuf,
        /// The newer kdb
        #[arg(value_name = "NEW")]
        new: PathBuf,
        /// Exit with 101 where MIOpen would get different answers
        #[arg(long)]
        exit_code: bool,
    },
}

/// What to do if files have different code objects for the same key.
const CONFLICTS: [Choice<Conflict>; 2] = [
    ("error", "Write nothing", Conflict::Error),
    ("first", "Take the file named first", Conflict::First),
];
