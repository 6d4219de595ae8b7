//! The command line, parsed by clap.

mod harvest;
mod kdb;
mod packaging;
mod problems;
mod runtime;

use std::path::PathBuf;
use std::time::Duration;

use crate::fail::MEANINGS;
use clap::{Args as ClapArgs, ColorChoice, Parser, Subcommand};
use gfxpack_pipeline::options::{
    BuildOptions, CompilerArgs, InputOptions, MergeOptions, PackageKdbs, PackageOptions, parse_age,
    parse_size, parsed,
};
pub(crate) use gfxpack_pipeline::options::{
    CacheArgs, CacheDir, LAYOUTS, ToolchainArgs, one_of, whole_file,
};
use gfxpack_plan::shard::Shard;

use crate::commands::{Caches, Perfdb};
pub(crate) use harvest::{
    Harvest, HarvestCommand, HarvestKeys, Run, SHELLS, Sources, Tune, TuneCollect, TuneEnv,
    TunePlan,
};
pub(crate) use kdb::{CheckKdb, Kdb};
pub(crate) use packaging::{Install, Recipe, Repo, Slim, Verify};
pub(crate) use problems::{Ask, MiopenCommand, ProblemsCommand};
pub(crate) use runtime::{Detect, Doctor, Hardware, Lookup, LookupArgs, Program, SYSFS, Which};

/// Builds GPU kernel packages for ROCm from source, on machines without a GPU.
#[derive(Debug, Parser)]
#[command(name = "gfxpack", version, max_term_width = 100)]
#[command(
    after_long_help = after_help()
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn after_help() -> String {
    let code = |(code, meaning): &(u8, &str)| format!("  {code:>3}  {meaning}\n");
    let codes: String = MEANINGS.iter().map(code).collect();
    let variables = VARIABLES.iter().map(|(names, effect)| format!("{names} ({effect})"));
    let variables = variables.collect::<Vec<_>>().join(", ");
    format!("Exit codes:\n{codes}  {OTHER_CODES}\n\nEnvironment: {variables}. {MORE_VARIABLES}")
}

/// What is not in the table of exit codes.
pub(crate) const OTHER_CODES: &str = "`run` and `problems -- PROGRAM` end with the program's own.";

/// Environment variables, and what they decide, for the help and the manual pages.
pub(crate) const VARIABLES: [(&str, &str); 12] = [
    ("GFXPACK_CACHE_DIR or XDG_CACHE_HOME", "where the cache is"),
    ("GFXPACK_CACHE_SIZE", "its limit"),
    ("HIPCC and PATH", "where toolchains are searched for"),
    ("ROCM_PATH", "where libMIOpen is"),
    ("GFXPACK_NO_LANDLOCK", "compilers run without Landlock, to find faults"),
    ("GFXPACK_DEBIAN_MIRROR", "Debian's archive"),
    ("http_proxy, https_proxy and no_proxy", "for downloads"),
    ("GITHUB_ACTIONS", "annotations"),
    ("NO_COLOR", "no colours"),
    ("SOURCE_DATE_EPOCH", "time stamps"),
    ("DEBFULLNAME and DEBEMAIL", "the packages' maintainer"),
    ("GFXPACK_LOG", "diagnostics, as gfxpack_compile=debug"),
];

/// What is not in the table of variables.
pub(crate) const MORE_VARIABLES: &str =
    "`gfxpack doctor --env` lists those that count at run time.";

/// Options that every command has.
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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile kernels, assemble kdbs, and package them
    Dist(Box<Dist>),
    /// Show what `dist` would do, or store it for other machines
    Plan(Box<PlanCommand>),
    /// Compile kernels and assemble kdbs, without packages
    Build(Box<BuildCommand>),
    /// Ask a stock libMIOpen or librocfft which kernels are needed
    ///
    /// The library runs without a GPU, and stand-ins take the place of HIP.
    Ask(Box<Ask>),
    /// Show, fetch or pin the libMIOpen that is asked
    ///
    /// Also takes the sources of its kernels out of it.
    Miopen(Box<MiopenCommand>),
    /// Package kdbs that exist
    Package(Box<PackageKdbs>),
    /// Write relations of kernels for packages that you build yourself
    ///
    /// Substitution variables for debhelper, and answers for rpm's dependency generators.
    #[command(subcommand)]
    Recipe(Recipe),
    /// Merge the shards of a stored plan into kdbs
    Merge(Box<MergeOptions>),
    /// Make a repository of packages, for apt, dnf and zypper
    Repo(Repo),
    /// Install the kernel packages for this machine's GPUs
    Install(Install),
    /// Check packages and repositories, down to every kernel
    Verify(Verify),
    /// Take out the device code that other GPUs need
    ///
    /// Of libraries, programs and files that others built: what is left loads and runs as before
    /// on the GPUs that are named.
    Slim(Slim),
    /// Inspect, verify and merge kdbs
    #[command(subcommand)]
    Kdb(Kdb),
    /// Run a program, and report which kernels MIOpen compiled
    Run(Run),
    /// Collect kernel keys from MIOpen's logs and kdbs, for --keys
    Harvest(Harvest),
    /// List what networks, PyTorch programs and logs ask of MIOpen
    ///
    /// The list has MIOpenDriver's commands, one a line.
    Problems(Box<ProblemsCommand>),
    /// Have MIOpen tune its kernels for what programs compute
    #[command(subcommand)]
    Tune(Tune),
    /// Show, check and clean the cache of compiled objects
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Merge and check performance and find databases
    #[command(subcommand)]
    Perfdb(Perfdb),
    /// Find and clear the caches of other GPU compilers and libraries
    #[command(subcommand)]
    Caches(Caches),
    /// List the known GPUs, and what can be built for them here
    Targets(Targets),
    /// Print this machine's GPUs, or the packages for them
    Detect(Detect),
    /// Look a kernel up as MIOpen and gfxpack's runtime do
    ///
    /// Says which file has it, or why each has not, with the nearest keys.
    Lookup(Lookup),
    /// Find what is wrong on this machine, and what to do about it
    Doctor(Doctor),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command
    Manual {
        /// The directory, which is made
        dir: PathBuf,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Dist {
    #[command(flatten)]
    pub(crate) build: BuildOptions,
    #[command(flatten)]
    pub(crate) packaging: PackageOptions,
    /// Check that the library finds every kernel
    ///
    /// The one that was asked, in the files made: libMIOpen for --problems,
    /// librocfft for --plans.
    #[arg(long, help_heading = "MIOpen")]
    pub(crate) check: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BuildCommand {
    #[command(flatten)]
    pub(crate) build: BuildOptions,
    /// Run a part of the plan, as 3/8, and leave its objects and a manifest in
    /// --out for `gfxpack merge`
    #[arg(long, value_name = "I/N", requires = "plan", value_parser = parsed::<Shard>, help_heading = "Stored plan",
          conflicts_with = "dry_run")]
    pub(crate) shard: Option<Shard>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PlanCommand {
    #[command(flatten)]
    pub(crate) inputs: InputOptions,
    #[command(flatten)]
    pub(crate) compilers: CompilerArgs,
    /// Print the command of every compile job
    #[arg(long)]
    pub(crate) commands: bool,
    /// Print what the object of every key that contains KEY depends on, and why
    /// it would be compiled
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, conflicts_with = "commands")]
    pub(crate) explain: Option<String>,
    /// Write the sources, and the files that their text names, below DIR, and
    /// the command of every compile job as a line of DIR/commands. DIR is new,
    /// empty, or of an earlier --stage, whose files are replaced
    #[arg(long, value_name = "DIR", conflicts_with = "explain")]
    pub(crate) stage: Option<PathBuf>,
    /// Another directory that compilers may read, as in the build; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_read: Vec<PathBuf>,
    /// Store the plan in DIR, for any machine with this toolchain to run with
    /// `build --plan DIR`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["explain", "stage", "commands", "allow_read"])]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Print what the cache holds
    Stats {
        #[command(flatten)]
        dir: CacheDir,
    },
    /// Remove the least recently used objects, until the cache is within its limits
    Gc {
        #[command(flatten)]
        dir: CacheDir,
        /// Largest size of the cache, as 20GB [default: GFXPACK_CACHE_SIZE]
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        max_size: Option<u64>,
        /// Remove files that were not used for this long, as 30d
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        max_age: Option<Duration>,
        /// Print what would be removed, and remove nothing
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
    /// Check the hash of every object, and remove damaged ones
    Verify {
        #[command(flatten)]
        dir: CacheDir,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Targets {
    /// Only those that can be built here
    #[arg(long)]
    pub(crate) buildable: bool,
    /// List the compilers that were found, and what each builds
    #[arg(long, conflicts_with = "buildable")]
    pub(crate) toolchains: bool,
    #[command(flatten)]
    pub(crate) toolchain: ToolchainArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_list_of_targets_has_no_options_of_builds() {
        let mut command = Args::command();
        let targets = command.find_subcommand_mut("targets").expect("a command");
        let help = targets.render_long_help().to_string();
        assert!(help.contains("--hipcc") && !help.contains("--cache-dir"), "{help}");
    }

    #[test]
    fn the_documentation_has_every_exit_code_as_the_help_has_it() {
        let page = include_str!("../messages.md");
        let rows: String =
            MEANINGS.iter().map(|(code, meaning)| format!("| {code} | {meaning} |\n")).collect();
        assert!(page.contains(&rows), "{rows}");
        for (code, meaning) in MEANINGS {
            assert!(after_help().contains(&format!("{code}  {meaning}\n")), "{code}");
        }
    }
}
