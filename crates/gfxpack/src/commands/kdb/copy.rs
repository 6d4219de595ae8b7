//! `kdb merge|split|convert|repair`: makes new kdbs from existing ones.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{Conflict, CopyOptions, Lost, Part, SplitBy, Written};
use gfxpack_pipeline::kdb_copy::{self, Repair};
use gfxpack_pipeline::progress::{Step, Unit};

use crate::context::Context;
use crate::fail::Result;
use crate::output::{Output, counted, display, if_any, message, size};
use crate::progress::Reporter;

/// Writes the union of kdbs.
pub(super) fn merge(
    files: &[PathBuf],
    out: &Path,
    conflict: Conflict,
    options: &CopyOptions<'_>,
    context: &Context,
) -> Result {
    let Context { output, .. } = context;
    output.building();
    let merged = step("merging", options, context, |options| {
        kdb_copy::merge(files, out, conflict, options)
    })?;
    message!(output, "merged", {
        "file": display(out), "rows": merged.written.rows, "file_bytes": merged.written.file_bytes,
        "repeated": merged.repeated, "conflicts": merged.conflicts,
    });
    let conflicts =
        if_any(merged.conflicts, |count| format!(", {count} of them with different code objects"));
    report(
        out,
        &merged.written,
        &format!("of {}{conflicts}", counted(files.len(), "file")),
        output,
    );
    Ok(())
}

/// Rewrites a kdb.
pub(super) fn convert(
    file: &Path,
    out: &Path,
    options: &CopyOptions<'_>,
    context: &Context,
) -> Result {
    let Context { output, .. } = context;
    output.building();
    let written =
        step("converting", options, context, |options| kdb_copy::convert(file, out, options))?;
    message!(output, "converted", {
        "file": display(out), "rows": written.rows, "raw_rows": written.raw_rows,
        "file_bytes": written.file_bytes,
    });
    let before = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    // If the kdb is replaced, there is nothing to compare with.
    let against = if before == written.file_bytes || file == out {
        String::new()
    } else {
        format!("(was {})", size(before))
    };
    report(out, &written, &against, output);
    Ok(())
}

/// Splits a kdb.
pub(super) fn split(
    file: &Path,
    out: &Path,
    by: SplitBy,
    options: &CopyOptions<'_>,
    context: &Context,
) -> Result {
    let Context { output, .. } = context;
    output.building();
    let each = |part: &Part| {
        message!(output, "part", {
            "file": display(&part.path), "rows": part.written.rows, "file_bytes": part.written.file_bytes,
        });
        output.text(&part.path.display().to_string());
        if let SplitBy::Size(limit) = by
            && part.written.file_bytes > limit
        {
            output.warn(&format!(
                "`{}` has {}: one kernel alone is larger than what was asked for",
                part.path.display(),
                size(part.written.file_bytes)
            ));
        }
    };
    step("splitting", options, context, |options| {
        gfxpack_kdb::split(file, out, by, options, |part| output.above(|| each(part)))
    })?;
    Ok(())
}

/// Saves the undamaged rows of a kdb.
pub(super) fn repair(
    file: &Path,
    out: &Path,
    options: &CopyOptions<'_>,
    context: &Context,
) -> Result {
    let Context { output, .. } = context;
    let repair = Repair::prepare(file, out, options)?;
    if let Some(log) = &repair.unread_log {
        output.warn(&format!(
            "`{}` may have rows that are not in the file yet, and is not read",
            log.display()
        ));
    }
    output.building();
    let lost = |row: &Lost| {
        message!(output, "lost", {
            "file": display(file), "key": row.key, "row": row.row, "page": row.page,
            "reason": row.reason,
        });
        output.foreign(&format!("lost: {row}"));
    };
    let repaired = step("saving", options, context, |options| {
        repair.run(options, |row| output.above(|| lost(row)))
    })?;
    message!(output, "repaired", {
        "file": display(out), "rows": repaired.written.rows, "lost": repaired.lost,
        "file_bytes": repaired.written.file_bytes, "page_size": repaired.page_size,
        "header_holds": repaired.header_holds, "pages": repaired.pages,
        "missing_pages": repaired.missing_pages, "read_bytes": repaired.read_bytes,
    });
    if !repaired.header_holds {
        output.warn(&format!(
            "the header is damaged; the pages are of {} bytes by what is in them",
            repaired.page_size
        ));
    }
    let pages = u64::from(repaired.pages) + u64::from(repaired.missing_pages);
    if repaired.missing_pages > 0 {
        output
            .warn(&format!("the file is cut short: {} of {pages} pages are there", repaired.pages));
    }
    report(out, &repaired.written, "saved", output);
    repair.outcome(&repaired)
}

/// Runs a long step, with its progress shown.
fn step<T>(
    what: &'static str,
    options: &CopyOptions<'_>,
    context: &Context,
    run: impl FnOnce(&CopyOptions<'_>) -> T,
) -> T {
    let reporter = Reporter::new(context);
    let step = Step::new(&reporter, what, Unit::Kernels, 0);
    let progress = |done| step.at_kdb(done);
    let cancelled = || context.cancel.is_cancelled();
    let mut options = *options;
    options.cancelled = Some(&cancelled);
    options.progress = Some(&progress);
    run(&options)
}

fn report(out: &Path, written: &Written, more: &str, output: &Output) {
    let text = format!(
        "{}: {}, {} {more}",
        out.display(),
        counted(written.rows, "kernel"),
        size(written.file_bytes)
    );
    output.info(text.trim_end());
}
