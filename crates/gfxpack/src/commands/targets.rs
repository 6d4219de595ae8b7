//! `targets`: the GPUs that are known, and what can be built for them here.

use gfxpack_compile::Cancel;
use gfxpack_model::processors::PROCESSORS;
use gfxpack_pipeline::error::Error;
use gfxpack_pipeline::toolchains::{BuildableLanguages, survey};
use gfxpack_toolchain::ToolchainError;
use serde_json::json;

use crate::args::Targets;
use crate::environment::Environment;
use crate::fail::Result;
use crate::options::{cache_dir, search};
use crate::output::Output;

/// Lists all processors.
pub(crate) fn run(
    args: &Targets,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    let (search, cache) =
        (search(&args.toolchain, environment), cache_dir(&args.cache.dir, environment));
    let listed = match survey(&search, &cache, cancel) {
        Ok(listed) => Some(listed),
        // Without a compiler the list is still of use; one that was named must work.
        Err(error)
            if !args.buildable && matches!(error, Error::Toolchain(ToolchainError::NoHipcc)) =>
        {
            output.warn(&format!("{error}; what can be built here is not known"));
            None
        }
        Err(error) => return Err(error.into()),
    };
    if !output.json {
        output.data(&format!(
            "{:<8}  {:<9}  {:<12}  {:<16}  PRODUCTS",
            "GFX", "FAMILY", "BUILDS", "COMPUTE UNITS"
        ));
    }
    for processor in PROCESSORS {
        let builds =
            listed.as_deref().map(|listed| BuildableLanguages::with(listed, processor.name));
        if args.buildable && !builds.is_some_and(|builds| builds.any()) {
            continue;
        }
        if output.json {
            let body = json!({
                "gfx": processor.name, "family": processor.family,
                "compute_units": processor.compute_units, "products": processor.products,
                "pci_ids": processor.pci_ids.iter().map(|id| format!("{id:04x}")).collect::<Vec<_>>(),
                "xnack": processor.xnack, "sramecc": processor.sramecc,
                "builds": builds.map(|builds| json!({
                    "hip": builds.hip, "opencl-c": builds.opencl_c, "assembly": builds.assembly,
                })),
            });
            output.message("target", &body);
        } else {
            let counts: Vec<String> =
                processor.compute_units.iter().map(ToString::to_string).collect();
            output.data(&format!(
                "{:<8}  {:<9}  {:<12}  {:<16}  {}",
                processor.name,
                processor.family,
                builds.map_or_else(|| "?".to_owned(), BuildableLanguages::in_words),
                counts.join(" "),
                processor.products.join(", ")
            ));
        }
    }
    Ok(())
}
