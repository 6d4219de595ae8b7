//! `targets`: the GPUs that are known, and what can be built for them here.

use gfxpack_compile::Cancel;
use gfxpack_model::Language;
use gfxpack_model::processors::PROCESSORS;
use gfxpack_pipeline::error::Error;
use gfxpack_toolchain::{Listed, ToolchainError};
use serde_json::json;

use super::toolchains;
use crate::args::Targets;
use crate::environment::Environment;
use crate::fail::{Failure, Result};
use crate::output::Output;

/// Lists all processors.
pub(crate) fn run(
    args: &Targets,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    let listed = match toolchains::survey(&args.toolchain, &args.cache, environment, cancel) {
        Ok(listed) => Some(listed),
        // Without a compiler the list is still of use; one that was named must work.
        Err(error)
            if !args.buildable
                && matches!(
                    error,
                    Failure::Pipeline(Error::Toolchain(ToolchainError::NoHipcc))
                ) =>
        {
            output.warn(&format!("{error}; what can be built here is not known"));
            None
        }
        Err(error) => return Err(error),
    };
    if !output.json {
        output.data(&format!(
            "{:<8}  {:<9}  {:<12}  {:<16}  PRODUCTS",
            "GFX", "FAMILY", "BUILDS", "COMPUTE UNITS"
        ));
    }
    for processor in PROCESSORS {
        let builds = listed.as_deref().map(|listed| Builds::of(listed, processor.name));
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
                builds.map_or_else(|| "?".to_owned(), Builds::in_words),
                counts.join(" "),
                processor.products.join(", ")
            ));
        }
    }
    Ok(())
}

/// The languages that a toolchain here builds for a processor.
#[derive(Debug, Clone, Copy)]
struct Builds {
    hip: bool,
    opencl_c: bool,
    assembly: bool,
}

impl Builds {
    fn of(listed: &[Listed], processor: &str) -> Self {
        let builds = |language| {
            let all = listed.iter().flat_map(|listed| &listed.builds);
            let mut of_language = all.filter(|(other, _)| *other == language);
            of_language.any(|(_, processors)| processors.iter().any(|(gfx, _)| *gfx == processor))
        };
        Self {
            hip: builds(Language::Hip),
            opencl_c: builds(Language::OpenclC),
            assembly: builds(Language::Assembly),
        }
    }

    fn any(self) -> bool {
        self.hip || self.opencl_c || self.assembly
    }

    fn in_words(self) -> String {
        let languages =
            [(self.hip, "HIP"), (self.opencl_c, "OpenCL C"), (self.assembly, "assembly")];
        let built: Vec<&str> =
            languages.iter().filter(|(builds, _)| *builds).map(|(_, name)| *name).collect();
        match built.len() {
            0 => "-".to_owned(),
            3 => "all".to_owned(),
            _ => built.join(", "),
        }
    }
}
