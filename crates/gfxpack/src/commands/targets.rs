//! `targets`: lists the known GPUs, and what can be built for them here.

use gfxpack_model::Language;
use gfxpack_model::processors::PROCESSORS;
use gfxpack_pipeline::text::language_word;
use gfxpack_toolchain::Missing;
use serde_json::json;

use super::toolchains::{self, buildable, survey};
use crate::args::Targets;
use crate::context::Context;
use crate::fail::Result;
use crate::output::{joined, message};

/// Lists all processors, or all toolchains.
pub(crate) fn run(args: &Targets, context: &Context) -> Result {
    let Context { cancel, output, .. } = context;
    let listed = match survey(&args.toolchain.search(), cancel) {
        Ok(listed) if args.toolchains => {
            toolchains::print(&listed, output);
            return Ok(());
        }
        Ok(listed) => Some(listed),
        // The list is useful even without a compiler. A compiler that was given must
        // work.
        Err(error)
            if !args.buildable && !args.toolchains && error.cause() == Some(&Missing::Hipcc) =>
        {
            output.warn(&format!("{error}; what can be built here is not known"));
            None
        }
        Err(error) => return Err(error),
    };
    let mut rows: Vec<[String; 5]> = Vec::new();
    for processor in PROCESSORS {
        let builds = listed.as_deref().map(|listed| buildable(listed, processor.name));
        if args.buildable && builds.as_ref().is_none_or(Vec::is_empty) {
            continue;
        }
        message!(output, "target", {
            "gfx": processor.name, "family": processor.family,
            "compute_units": processor.compute_units, "products": processor.products,
            "pci_ids": processor.pci_ids.iter().map(|id| format!("{id:04x}")).collect::<Vec<_>>(),
            "xnack": processor.xnack, "sramecc": processor.sramecc,
            "builds": builds.as_ref().map(|builds| {
                let known = |one| (language_word(one).to_owned(), json!(builds.contains(&one)));
                Language::ALL.map(known).into_iter().collect::<serde_json::Map<_, _>>()
            }),
        });
        let counts: Vec<String> = processor.compute_units.iter().map(ToString::to_string).collect();
        rows.push([
            processor.name.to_owned(),
            processor.family.to_owned(),
            match builds.as_deref() {
                None => "?".to_owned(),
                Some([]) => "-".to_owned(),
                Some(all) if all.len() == Language::ALL.len() => "all".to_owned(),
                Some(some) => joined(some),
            },
            counts.join(" "),
            joined(processor.products),
        ]);
    }
    let head = ["GFX", "FAMILY", "BUILDS", "COMPUTE UNITS", "PRODUCTS"].map(str::to_owned);
    rows.insert(0, head);
    table(&rows).iter().for_each(|line| output.text(line));
    Ok(())
}

/// The rows with aligned columns.
fn table<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
