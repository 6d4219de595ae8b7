//! `kdb merge|split|convert|repair`: kdbs into other kdbs.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{CopyOptions, Layout, Part, Reader, SplitBy, Written};
use gfxpack_plan::KernelKey;
use serde_json::json;

use crate::args::{ConflictArg, Copy, KdbLayout};
use crate::fail::{self, Outcome};
use crate::output::{Output, size};
use crate::progress::bar::{Bar, Unit};

/// Writes the union of kdbs.
pub(super) fn merge(
    files: &[PathBuf],
    out: &Path,
    conflict: ConflictArg,
    copy: &Copy,
    output: &Output,
) -> anyhow::Result<()> {
    check_layout(out, copy.layout == Some(KdbLayout::Dense))?;
    output.building();
    let merged = watched("merging", copy, output, |options, _| {
        gfxpack_kdb::merge(files, out, conflict.into(), options)
    })?;
    let body = json!({
        "file": out, "rows": merged.written.rows, "file_bytes": merged.written.file_bytes,
        "repeated": merged.repeated, "conflicts": merged.conflicts,
    });
    output.message("merged", &body);
    let conflicts = match merged.conflicts {
        0 => String::new(),
        count => format!(", {count} of them with different code objects"),
    };
    said(out, &merged.written, &format!("of {} files{conflicts}", files.len()), output);
    Ok(())
}

/// Writes a kdb anew.
pub(super) fn convert(file: &Path, out: &Path, copy: &Copy, output: &Output) -> anyhow::Result<()> {
    let dense = match copy.layout {
        Some(layout) => layout == KdbLayout::Dense,
        None => layout_of(file) == Some(Layout::Dense),
    };
    check_layout(out, dense)?;
    output.building();
    let written =
        watched("converting", copy, output, |options, _| gfxpack_kdb::convert(file, out, options))?;
    let body = json!({
        "file": out, "rows": written.rows, "raw_rows": written.raw_rows,
        "file_bytes": written.file_bytes,
    });
    output.message("converted", &body);
    let before = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    // In place there is no file to compare with any more.
    let against = if before == written.file_bytes || file == out {
        String::new()
    } else {
        format!("(was {})", size(before))
    };
    said(out, &written, &against, output);
    Ok(())
}

/// Writes a kdb in parts.
pub(super) fn split(
    file: &Path,
    out: &Path,
    by: SplitBy,
    copy: &Copy,
    output: &Output,
) -> anyhow::Result<()> {
    output.building();
    let each = |part: &Part| {
        let body = json!({
            "file": part.path, "rows": part.written.rows, "file_bytes": part.written.file_bytes,
        });
        output.message("part", &body);
        if !output.json {
            output.data(&part.path.display().to_string());
        }
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
    watched("splitting", copy, output, |options, bar| {
        gfxpack_kdb::split(file, out, by, options, |part| bar.above(|| each(part)))
    })?;
    Ok(())
}

/// Saves what is whole of a damaged kdb.
pub(super) fn repair(file: &Path, out: &Path, copy: &Copy, output: &Output) -> anyhow::Result<()> {
    check_layout(out, copy.layout == Some(KdbLayout::Dense))?;
    if is_same(file, out) {
        return Err(fail::usage(
            format!("failed to repair `{}` in place", file.display()),
            "write to another file: what can't be saved now may be saved in another way",
        ));
    }
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 0) {
        output.warn(&format!(
            "`{}` has rows that are not in the file yet, and is not read",
            Path::new(&log).display()
        ));
    }
    output.building();
    let lost = |key: &KernelKey, reason: &str| {
        output.message("lost", &json!({ "file": file, "key": key, "reason": reason }));
        if !output.json {
            output.data(&format!("lost: {key}: {reason}"));
        }
    };
    let repaired = watched("saving", copy, output, |options, bar| {
        gfxpack_kdb::repair(file, out, options, |key, reason| bar.above(|| lost(key, reason)))
    })?;
    let body = json!({
        "file": out, "rows": repaired.written.rows, "lost": repaired.lost,
        "file_bytes": repaired.written.file_bytes, "page_size": repaired.page_size,
        "header_holds": repaired.header_holds,
    });
    output.message("repaired", &body);
    if !repaired.header_holds {
        output.warn(&format!(
            "the header is damaged; the pages are of {} bytes by what is in them",
            repaired.page_size
        ));
    }
    said(out, &repaired.written, "saved", output);
    match repaired.lost {
        0 => Ok(()),
        lost => {
            let file = file.display().to_string();
            Err(Outcome::Lost { file, lost, total: lost + repaired.written.rows }.into())
        }
    }
}

/// Does what takes long, with a bar that shows how far it is.
fn watched<T>(
    what: &'static str,
    copy: &Copy,
    output: &Output,
    run: impl FnOnce(&CopyOptions<'_>, &Bar) -> T,
) -> T {
    let bar = Bar::new(output, what, Unit::Kernels, 0);
    let progress = |done| bar.progress(done);
    let mut options = copy.options();
    if bar.is_wanted() {
        options.progress = Some(&progress);
    }
    run(&options, &bar)
}

fn said(out: &Path, written: &Written, more: &str, output: &Output) {
    let text =
        format!("{}: {} kernels, {} {more}", out.display(), written.rows, size(written.file_bytes));
    output.say(text.trim_end());
}

/// A user's kdb is written to by MIOpen, which can't insert through a view.
fn check_layout(out: &Path, dense: bool) -> anyhow::Result<()> {
    if dense && out.extension().is_some_and(|extension| extension == "ukdb") {
        return Err(fail::usage(
            format!("failed to lay out `{}` densely: MIOpen writes to a user's kdb", out.display()),
            "the dense layout is for installed files: name it .kdb, or give --layout miopen",
        ));
    }
    Ok(())
}

fn layout_of(file: &Path) -> Option<Layout> {
    Reader::open(file).ok()?.layout()
}

fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path| std::fs::canonicalize(path).ok();
    real(a).is_some_and(|a| Some(a) == real(b))
}
