//! `package`: packages existing kdbs.

use gfxpack_pipeline::package_existing::PackageKdbs;

use super::dist::report_packages;
use crate::args::Package;
use crate::context::Context;
use crate::fail::Result;
use crate::options::cache_options;
use crate::progress::Reporter;

/// Verifies and packages each kdb.
pub(crate) fn run(args: &Package, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let package = PackageKdbs {
        kdbs: &args.kdbs,
        out: &args.out,
        allow_partial: args.allow_partial,
        options: &args.packaging,
        cache: &cache_options(&args.cache, environment)?,
    };
    output.building();
    let made = package.run(&Reporter::new(context))?;
    report_packages(&made.packages, output);
    Ok(())
}
