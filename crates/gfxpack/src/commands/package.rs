//! `package`: packages existing kdbs.

use gfxpack_pipeline::options::PackageKdbs;

use super::dist::report_packages;
use crate::context::Context;
use crate::fail::Result;
use crate::options::cache_options;
use crate::progress::Reporter;

/// Verifies and packages each kdb.
pub(crate) fn run(args: &PackageKdbs, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let cache = cache_options(&args.cache, environment)?;
    output.building();
    let made = args.run(&cache, &Reporter::new(context))?;
    report_packages(&made.packages, output);
    Ok(())
}
