//! Arguments of `merge`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{CacheArgs, KdbForm};

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
