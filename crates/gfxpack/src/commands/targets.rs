//! `targets`: the GPUs that are known, and what can be built for them here.

use gfxpack_compile::{Cancel, FileDigests, Toolchain};
use gfxpack_plan::processors::PROCESSORS;
use serde_json::json;

use crate::args::Targets;
use crate::environment::Environment;
use crate::output::Output;
use crate::prepare;

/// Lists all processors.
pub(crate) fn run(
    args: &Targets,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<()> {
    let digests = FileDigests::in_memory();
    let scratch = tempfile::tempdir()?;
    let toolchain =
        prepare::toolchain(&args.toolchain, environment, &digests, scratch.path(), cancel);
    let toolchain = match toolchain {
        Ok(toolchain) => Some(toolchain),
        // Without a compiler the list is still of use; one that was named must work.
        Err(error)
            if args.buildable
                || args.toolchain.hipcc.is_some()
                || args.toolchain.clang.is_some() =>
        {
            return Err(error);
        }
        Err(error) => {
            output.warn(&format!("{error}; what can be built here is not known"));
            None
        }
    };
    if !output.json {
        if let Some(toolchain) = &toolchain {
            output.say(&format!("using {}", toolchain.identity()));
        }
        output.data(&format!(
            "{:<8}  {:<9}  {:<12}  {:<16}  PRODUCTS",
            "GFX", "FAMILY", "BUILDS", "COMPUTE UNITS"
        ));
    }
    for processor in PROCESSORS {
        let builds =
            toolchain.as_ref().map(|toolchain: &Toolchain| toolchain.buildable(processor.name));
        if args.buildable && !builds.is_some_and(|builds| builds.compiler) {
            continue;
        }
        let builds_text = match builds {
            None => "?",
            Some(builds) if builds.compiler && builds.device_libs => "all",
            Some(builds) if builds.compiler => "assembly",
            Some(_) => "-",
        };
        if output.json {
            let body = json!({
                "gfx": processor.name, "family": processor.family,
                "compute_units": processor.compute_units, "products": processor.products,
                "pci_ids": processor.pci_ids.iter().map(|id| format!("{id:04x}")).collect::<Vec<_>>(),
                "xnack": processor.xnack, "sramecc": processor.sramecc,
                "builds": builds.map(|builds| json!({
                    "hip": builds.compiler && builds.device_libs,
                    "opencl-c": builds.compiler && builds.device_libs,
                    "assembly": builds.compiler,
                })),
            });
            output.message("target", &body);
        } else {
            let counts: Vec<String> =
                processor.compute_units.iter().map(ToString::to_string).collect();
            output.data(&format!(
                "{:<8}  {:<9}  {builds_text:<12}  {:<16}  {}",
                processor.name,
                processor.family,
                counts.join(" "),
                processor.products.join(", ")
            ));
        }
    }
    Ok(())
}
