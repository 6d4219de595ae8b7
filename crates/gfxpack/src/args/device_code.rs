//! Arguments about device code in files that others built.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use gfxpack_model::TargetId;
use gfxpack_pipeline::options::parse_target;

use super::Hardware;

#[derive(Debug, ClapArgs)]
pub(crate) struct Slim {
    /// A library or program, or a directory of them; or packages: .debs, .rpms, wheels, images
    #[arg(required = true, value_name = "IN")]
    pub(crate) from: Vec<PathBuf>,
    /// GPUs whose code stays, as gfx1100 or gfx90a:xnack-; repeatable, or with commas
    #[arg(long, short, required = true, value_name = "TARGET", value_delimiter = ',', value_parser = parse_gpu)]
    pub(crate) target: Vec<TargetId>,
    /// Where the smaller one goes, a new name; a directory for packages
    #[arg(long, value_name = "OUT", required_unless_present = "dry_run")]
    pub(crate) out: Option<PathBuf>,
    /// Print what would become of it, and write nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Take out code for GPUs of this machine too
    ///
    /// HIP up to July 2026 gives no code to any GPU of a machine if the first one has none.
    #[arg(long)]
    pub(crate) only: bool,
    #[command(flatten)]
    pub(crate) hardware: Hardware,
}

/// A GPU without a number of compute units, which make no difference here.
pub(crate) fn parse_gpu(text: &str) -> Result<TargetId, String> {
    let target = parse_target(text)?;
    match target.compute_units() {
        None => Ok(target.id().clone()),
        Some(_) => Err(format!(
            "`{text}` has a number of compute units\nhint: leave it out, as in {}",
            target.id()
        )),
    }
}
