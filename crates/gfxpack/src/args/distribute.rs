//! Arguments of the commands that run a stored plan on several machines.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use gfxpack_model::Digest;
use gfxpack_pipeline::shards::state::State;
use gfxpack_plan::shard::Shard;

use super::parsers::parse_timeout;
use super::{CacheArgs, CompilerArgs, KdbForm, ToolchainArgs};
use crate::fail::Result;

/// The options of `InputArgs`, which can't be given with a stored plan. They are
/// listed since clap makes no group of a struct into which others are flattened.
const INPUTS: [&str; 16] = [
    "manifest",
    "keys",
    "allow_empty_keys",
    "missing_from",
    "skip_refused",
    "problems",
    "miopen",
    "miopen_db",
    "uses",
    "plans",
    "rocfft",
    "debian_mirror",
    "source_dir",
    "target",
    "dfsg",
    "license_allow",
];

/// A stored plan in place of inputs.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Stored plan")]
pub(crate) struct FromPlan {
    /// Run the plan that `gfxpack plan --out DIR` stored, in place of all
    /// options under Input, MIOpen and rocFFT
    #[arg(long, value_name = "DIR", conflicts_with_all = INPUTS)]
    pub(crate) plan: Option<PathBuf>,
    /// Run a part of it, as 3/8, and leave its objects and a manifest in
    /// --out for `gfxpack merge`
    #[arg(long, value_name = "I/N", requires = "plan", value_parser = parse_shard, conflicts_with = "dry_run")]
    pub(crate) shard: Option<Shard>,
    /// Balance the shards by the times in FILE: what an earlier build printed
    /// with --message-format json, or its cache's costs.jsonl; give every shard
    /// the same file
    #[arg(long, value_name = "FILE", requires = "shard")]
    pub(crate) costs: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Merge {
    /// Directories that shards were built into
    #[arg(required = true, value_name = "DIR")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Their plan
    #[arg(long, value_name = "DIR")]
    pub(crate) plan: PathBuf,
    /// Output directory; kdbs go to DIR/kdb
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Merge even if shards or kernels are missing; the kdbs' manifest lists
    /// them, and `package` needs --allow-partial for these kdbs
    #[arg(long)]
    pub(crate) allow_partial: bool,
    #[command(flatten)]
    pub(crate) form: KdbForm,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

/// Where shards are, and how many there should be.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ShardsIn {
    /// Directories that shards are built into
    #[arg(required = true, value_name = "DIR")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Their plan [default: the plan of the first shard found]
    #[arg(long, value_name = "DIR")]
    pub(crate) plan: Option<PathBuf>,
    /// Number of shards [default: as submitted, else as the shards found say]
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<NonZeroU32>,
}

impl ShardsIn {
    /// The state of the shards.
    pub(crate) fn state(&self) -> Result<State> {
        State::read(&self.dirs, self.plan.as_deref(), self.shards)
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) shards: ShardsIn,
    /// Print only which shards to run: one a line as 3/8, or as a scheduler's
    /// array, 1,4-6
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, require_equals = true,
          default_missing_value = "list")]
    pub(crate) missing: Option<Missing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Missing {
    /// One a line.
    List,
    /// 1,4-6.
    Ranges,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Submit {
    /// Write an array job for Slurm, and submit the shards that are neither
    /// done, running nor queued
    Slurm(Box<SlurmArgs>),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SlurmArgs {
    /// The stored plan, in a directory that every node sees
    #[arg(long, value_name = "DIR")]
    pub(crate) plan: PathBuf,
    /// Output directory of the shards, which every node sees; the script is
    /// DIR/slurm/shards.sbatch
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// How many shards; 8 to 16 per node, so that slow nodes run fewer
    #[arg(long, value_name = "N")]
    pub(crate) shards: NonZeroU32,
    /// Processors for each shard
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) cpus: NonZeroU32,
    /// Balance the shards by the times in FILE, as `build --costs` does
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// How long one kernel may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = parse_timeout)]
    pub(crate) timeout: u64,
    /// Another directory that compilers may read; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_read: Vec<PathBuf>,
    /// A line for the script's head, as --partition=gpu; repeatable
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    /// Write the script, say what would be submitted, and submit nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) toolchain: ToolchainArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Wait {
    #[command(flatten)]
    pub(crate) shards: ShardsIn,
    /// How often to ask the cluster, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) poll: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// A build.ninja with an edge for every job, and the kdbs at the end
    Ninja(Ninja),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Ninja {
    /// The stored plan
    #[arg(long, value_name = "DIR")]
    pub(crate) plan: PathBuf,
    /// Where to write build.ninja; ninja's outputs go there too
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Another directory that compilers may read; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_read: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) toolchain: ToolchainArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExecJob {
    /// The job's digest
    #[arg(value_name = "JOB")]
    pub(crate) job: Digest,
    /// The stored plan
    #[arg(long, value_name = "DIR")]
    pub(crate) plan: PathBuf,
    /// Where its object goes
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// How long it may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = parse_timeout)]
    pub(crate) timeout: u64,
    /// Another directory that compilers may read; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_read: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) compilers: CompilerArgs,
}

fn parse_shard(text: &str) -> Result<Shard, String> {
    text.parse::<Shard>().map_err(|error| format!("{error}\nhint: {}", error.hint()))
}
