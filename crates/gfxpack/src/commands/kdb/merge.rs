//! `kdb merge`: writes the union of kdbs.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{Blob, Conflict, CopyOptions};
use gfxpack_pipeline::destination;
use gfxpack_pipeline::progress::{Step, Unit};
use gfxpack_process::open_many;

use crate::context::Context;
use crate::fail::Result;
use crate::output::{counted, display, if_any, message, size};
use crate::progress::Reporter;

/// Writes the union of kdbs.
pub(super) fn run(
    files: &[PathBuf],
    out: &Path,
    conflict: Conflict,
    blob: Option<Blob>,
    context: &Context,
) -> Result {
    let Context { output, .. } = context;
    output.building();
    let merged = {
        let reporter = Reporter::new(context);
        let step = Step::new(&reporter, "merging", Unit::Kernels, 0);
        let progress = |done, total| step.at(done, total);
        let cancelled = || context.cancel.is_cancelled();
        let mut options = CopyOptions::default();
        options.blob = blob;
        options.cancelled = Some(&cancelled);
        options.progress = Some(&progress);
        let out = destination::database(out)?;
        open_many();
        gfxpack_kdb::merge(files, &out, conflict, &options)?
    };
    let written = &merged.written;
    message!(output, "merged", {
        "file": display(out), "rows": written.rows, "file_bytes": written.file_bytes,
        "repeated": merged.repeated, "conflicts": merged.conflicts,
    });
    let conflicts =
        if_any(merged.conflicts, |count| format!(", {count} of them with different code objects"));
    output.info(&format!(
        "{}: {}, {} of {}{conflicts}",
        out.display(),
        counted(written.rows, "kernel"),
        size(written.file_bytes),
        counted(files.len(), "file")
    ));
    Ok(())
}
