//! `kdb stats`: shows what takes the space in a kdb, as a table, JSON or a page.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{Stats, Sums};
use gfxpack_pipeline::progress::{Step, Unit};
use gfxpack_pipeline::report::kdb_stats::{self, Part, parts, ratio};
use serde_json::{Value, json};

use crate::args::MaxObject;
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, harmless, message, size, to_file};
use crate::progress::Reporter;

/// Prints the sums.
pub(super) fn run(
    file: &Path,
    html: Option<&PathBuf>,
    top: usize,
    max_object: MaxObject,
    context: &Context,
) -> Result {
    let Context { output, .. } = context;
    let to_stdout = html.is_some() && to_file(html).is_none();
    if to_stdout && output.json {
        return Err(fail::usage(
            "failed to write the page to stdout: the messages go there",
            "name a file with --html",
        ));
    }
    let stats = {
        let reporter = Reporter::new(context);
        let step = Step::new(&reporter, "reading", Unit::Kernels, 0);
        max_object.open(file)?.stats(Some(&|done| step.at_kdb(done)))?
    };
    if html.is_some() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let page = kdb_stats::page(&name, &stats);
        output.put(html, page.as_bytes())?;
        to_file(html).iter().for_each(|path| output.info(&path.display().to_string()));
    }
    let kernels: Vec<Value> = stats
        .largest_first()
        .into_iter()
        .map(|(name, sums)| json!({ "kernel_name": name, "sums": sums_body(sums) }))
        .collect();
    message!(output, "kdb-stats", {
        "file": display(file), "file_bytes": stats.file_bytes,
        "layout": stats.layout.name(), "all": sums_body(&stats.all),
        "object_size_powers_of_two": stats.sizes.as_slice(), "ratio_twentieths": stats.ratios,
        "kernels": kernels,
    });
    if html.is_none() && !output.json {
        table(file, &stats, top, output);
    }
    Ok(())
}

fn sums_body(sums: &Sums) -> Value {
    json!({
        "rows": sums.rows, "raw_rows": sums.raw_rows, "stored_bytes": sums.stored_bytes,
        "object_bytes": sums.object_bytes, "key_bytes": sums.key_bytes,
        "repeated_rows": sums.repeated_rows, "repeated_bytes": sums.repeated_bytes,
    })
}

fn table(file: &Path, stats: &Stats, top: usize, output: &Output) {
    let layout = stats.layout.name();
    output.text(&format!(
        "{}: {}, {}, layout {layout}",
        file.display(),
        size(stats.file_bytes),
        counted(stats.all.rows, "kernel")
    ));
    for Part { name, bytes, note } in parts(stats) {
        output.text(&format!("  {name:<11}{:>10}  {note}", size(bytes)));
    }
    let mut kernels = stats.largest_first();
    kernels.truncate(top);
    if kernels.is_empty() {
        return;
    }
    output.text(&format!(
        "  {:>7} {:>10} {:>10} {:>6}  kernel",
        "rows", "stored", "objects", "ratio"
    ));
    for (name, sums) in &kernels {
        output.text(&format!(
            "  {:>7} {:>10} {:>10} {:>6}  {}",
            sums.rows,
            size(sums.stored_bytes),
            size(sums.object_bytes),
            ratio(sums),
            harmless(name)
        ));
    }
    if stats.kernels.len() > kernels.len() {
        output.text(&format!("  {} more: --top N", stats.kernels.len() - kernels.len()));
    }
}
