//! Arguments of `run`, `harvest` and `tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use gfxpack_caches::Shell;
use gfxpack_harvest::script::Tuning;
use gfxpack_pipeline::options::{Choice, one_of};

/// Shells for which lines can be printed.
pub(crate) const SHELLS: [Choice<Shell>; 3] = [
    ("sh", "sh, and what is like it: bash, zsh, dash", Shell::Sh),
    ("fish", "", Shell::Fish),
    ("csh", "", Shell::Csh),
];

#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// The program and its arguments. Its output is passed on, and its exit
    /// code is this command's; if a signal ended it, 128 plus the signal's
    /// number
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) command: Vec<OsString>,
    /// Where to write the keys that MIOpen had to compile; if there are none,
    /// the list is empty
    #[arg(long, short, value_name = "FILE", default_value = "missed.jsonl")]
    pub(crate) out: PathBuf,
    /// Also write the plans of rocFFT that the program creates, as a list for
    /// --plans of `dist`. rocFFT logs its calls for that into TMPDIR, about 100
    /// bytes for each transform that is carried out
    #[arg(long, value_name = "FILE")]
    pub(crate) plans: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Harvest {
    #[command(subcommand)]
    pub(crate) command: Option<HarvestCommand>,
    #[command(flatten)]
    pub(crate) keys: HarvestKeys,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HarvestCommand {
    /// Gather the plans of rocFFT from its logs of calls (ROCFFT_LAYER=1,
    /// ROCFFT_LOG_TRACE_PATH=FILE) as a list for --plans of `dist`
    Plans {
        /// The logs; `-` is the standard input
        #[arg(value_name = "LOG", required = true)]
        logs: Vec<PathBuf>,
        /// Fail if a line can't be read, in place of a warning
        #[arg(long)]
        strict: bool,
        /// Where to write the plans [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HarvestKeys {
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Only keys that MIOpen had to compile, as far as the log shows
    #[arg(long)]
    pub(crate) missed: bool,
    /// Where to write the keys [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// What is read.
#[derive(Debug, ClapArgs)]
pub(crate) struct Sources {
    /// MIOpen's logs, also packed by gzip, zstd or xz, and directories; to gather
    /// keys also kdbs, users' kdbs and earlier harvests, to gather commands also
    /// lists of commands; `-` is the standard input [default: -]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Skip damaged parts of files
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Fail if a line can't be read, in place of a warning
    #[arg(long, conflicts_with = "keep_going")]
    pub(crate) strict: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tune {
    /// Make a directory with a script that has MIOpen tune for what a log's
    /// driver commands compute
    Plan(TunePlan),
    /// Merge the databases that tuning filled, each over the system's, for a
    /// package (--with-perfdb of `dist` and `package`)
    Collect(TuneCollect),
    /// Print environment variables that make MIOpen tune for what any program
    /// computes
    Env(TuneEnv),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TuneEnv {
    /// What to tune; `off` unsets the variables
    #[arg(value_parser = one_of(&ENV_MODES), value_name = "MODE")]
    pub(crate) mode: TunedFor,
    /// Where the results go [default: MIOPEN_USER_DB_PATH, else
    /// ~/.config/miopen]
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    /// The shell that reads it
    #[arg(long, value_parser = one_of(&SHELLS), default_value = "sh")]
    pub(crate) shell: Shell,
}

/// What a program has MIOpen tune for, if anything. Not written as an `Option`, which clap would take
/// for an argument that may be missing.
type TunedFor = std::option::Option<Tuning>;

const ENV_MODES: [Choice<TunedFor>; 3] = [
    (
        "incremental",
        "For what neither the system's databases nor the user's have",
        Some(Tuning::Incremental),
    ),
    ("exhaustive", "For everything again, which takes long", Some(Tuning::Exhaustive)),
    ("off", "Stop tuning", None),
];

#[derive(Debug, ClapArgs)]
pub(crate) struct TunePlan {
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Where to put the script; its databases and lists go there too
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// What is searched for
    #[arg(long, value_parser = one_of(&MODES), default_value = "incremental", value_name = "MODE")]
    pub(crate) mode: Tuning,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TuneCollect {
    /// Directories of `tune plan`, or of users' databases (~/.config/miopen);
    /// where they contradict each other, the one named last wins
    #[arg(required = true, value_name = "DIR")]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory of the system's databases, which tuning adds to
    #[arg(long, value_name = "DIR")]
    pub(crate) system: Option<PathBuf>,
    /// Where to put the databases, under the names that MIOpen looks for in the
    /// system
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Leave out what MIOpen can't read
    #[arg(long)]
    pub(crate) keep_going: bool,
}

const MODES: [Choice<Tuning>; 2] = [
    (
        "incremental",
        "What neither the system's databases nor the user's have (MIOPEN_FIND_ENFORCE=3)",
        Tuning::Incremental,
    ),
    (
        "exhaustive",
        "Everything again, which takes long (MIOPEN_FIND_ENFORCE=4)",
        Tuning::Exhaustive,
    ),
];
