//! Arguments for a stored plan: running it, and merging its shards.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use gfxpack_plan::shard::Shard;

use super::{CacheArgs, KdbForm};

/// The options of `InputArgs`, which can't be given with a stored plan. They are
/// listed since clap makes no group of a struct into which others are flattened.
const INPUTS: [&str; 15] = [
    "manifest",
    "keys",
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
    #[arg(long, value_name = "DIR", required_unless_present = "missing")]
    pub(crate) out: Option<PathBuf>,
    /// Merge nothing; print the shards that are to run, or to run again, as a
    /// scheduler takes them for an array: 1,4-6; nothing if all are done
    #[arg(long, conflicts_with_all = ["out", "allow_partial"])]
    pub(crate) missing: bool,
    /// How many shards there are, for --missing [default: as a shard that is
    /// done says]
    #[arg(long, value_name = "N", requires = "missing")]
    pub(crate) shards: Option<NonZeroU32>,
    /// Merge even if shards or kernels are missing; the kdbs' manifest lists
    /// them, and `package` needs --allow-partial for these kdbs
    #[arg(long)]
    pub(crate) allow_partial: bool,
    #[command(flatten)]
    pub(crate) form: KdbForm,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

fn parse_shard(text: &str) -> Result<Shard, String> {
    text.parse::<Shard>().map_err(|error| format!("{error}\nhint: {}", error.hint()))
}
