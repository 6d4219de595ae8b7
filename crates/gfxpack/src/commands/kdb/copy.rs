//! `kdb merge|split|convert|repair`: kdbs into other kdbs.

use std::path::{Path, PathBuf};

use gfxpack_compile::Cancel;
use gfxpack_kdb::{CopyOptions, Layout, Lost, Part, Reader, Repaired, SplitBy, Written};
use gfxpack_pipeline::destination;
use serde_json::json;

use crate::args::ConflictArg;
use crate::fail::{self, Failure, Result};
use crate::output::{Output, counted, shown, size};
use crate::progress::bar::{Bar, Unit};

/// Writes the union of kdbs.
pub(super) fn merge(
    files: &[PathBuf],
    out: &Path,
    conflict: ConflictArg,
    options: &CopyOptions<'_>,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    check_layout(out, options.layout == Some(Layout::Dense))?;
    let real = destination::database(out)?;
    output.building();
    open_many();
    let merged = watched("merging", options, cancel, output, |options, _| {
        gfxpack_kdb::merge(files, &real, conflict.into(), options)
    })?;
    let body = json!({
        "file": shown(out), "rows": merged.written.rows, "file_bytes": merged.written.file_bytes,
        "repeated": merged.repeated, "conflicts": merged.conflicts,
    });
    output.message("merged", &body);
    let conflicts = match merged.conflicts {
        0 => String::new(),
        count => format!(", {count} of them with different code objects"),
    };
    said(out, &merged.written, &format!("of {}{conflicts}", counted(files.len(), "file")), output);
    Ok(())
}

/// Writes a kdb anew.
pub(super) fn convert(
    file: &Path,
    out: &Path,
    options: &CopyOptions<'_>,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    let layout = options.layout.or_else(|| Some(Reader::open(file).ok()?.layout()));
    check_layout(out, layout == Some(Layout::Dense))?;
    let real = destination::database(out)?;
    output.building();
    let written = watched("converting", options, cancel, output, |options, _| {
        gfxpack_kdb::convert(file, &real, options)
    })?;
    let body = json!({
        "file": shown(out), "rows": written.rows, "raw_rows": written.raw_rows,
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
    options: &CopyOptions<'_>,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    output.building();
    let each = |part: &Part| {
        let body = json!({
            "file": shown(&part.path), "rows": part.written.rows, "file_bytes": part.written.file_bytes,
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
    watched("splitting", options, cancel, output, |options, bar| {
        gfxpack_kdb::split(file, out, by, options, |part| bar.above(|| each(part)))
    })?;
    Ok(())
}

/// Saves what is whole of a damaged kdb.
pub(super) fn repair(
    file: &Path,
    out: &Path,
    options: &CopyOptions<'_>,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    check_layout(out, options.layout == Some(Layout::Dense))?;
    let real = destination::database(out)?;
    if is_same(file, out) {
        return Err(fail::usage(
            format!("failed to repair `{}` in place", file.display()),
            "write to another file: what can't be saved now may be saved in another way",
        ));
    }
    let log = unread_log(file);
    if let Some(log) = &log {
        output.warn(&format!(
            "`{}` may have rows that are not in the file yet, and is not read",
            log.display()
        ));
    }
    output.building();
    let lost = |row: &Lost| {
        let body = json!({
            "file": shown(file), "key": row.key, "row": row.row, "page": row.page,
            "reason": row.reason,
        });
        output.message("lost", &body);
        if !output.json {
            output.foreign(&format!("lost: {row}"));
        }
    };
    let repaired = watched("saving", options, cancel, output, |options, bar| {
        gfxpack_kdb::repair(file, &real, options, |row| bar.above(|| lost(row)))
    })?;
    let body = json!({
        "file": shown(out), "rows": repaired.written.rows, "lost": repaired.lost,
        "file_bytes": repaired.written.file_bytes, "page_size": repaired.page_size,
        "header_holds": repaired.header_holds, "pages": repaired.pages,
        "missing_pages": repaired.missing_pages, "read_bytes": repaired.read_bytes,
    });
    output.message("repaired", &body);
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
    said(out, &repaired.written, "saved", output);
    match what_is_lost(&repaired, log.as_deref()) {
        None => Ok(()),
        Some((what, hint)) => Err(Failure::Lost { file: shown(file), what, hint }),
    }
}

/// Bytes before the first page of a write-ahead log.
///
/// Source: SQLite, "Database File Format", section 4.1.
const LOG_HEADER_BYTES: u64 = 32;

/// The write-ahead log of a file, if there are pages in it.
fn unread_log(file: &Path) -> Option<PathBuf> {
    let mut log = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned()).into_os_string();
    log.push("-wal");
    let pages = |metadata: std::fs::Metadata| metadata.len() > LOG_HEADER_BYTES;
    std::fs::metadata(&log).is_ok_and(pages).then(|| log.into())
}

/// What a repair could not save, and what to do about it.
fn what_is_lost(repaired: &Repaired, log: Option<&Path>) -> Option<(String, &'static str)> {
    let (saved, lost, pages) = (repaired.written.rows, repaired.lost, repaired.missing_pages);
    let build = "what could be saved is written; build the others again";
    if pages > 0 {
        let known =
            if lost > 0 { format!("{} and ", counted(lost, "kernel")) } else { String::new() };
        let what = format!("{known}whatever was in the {} cut off", counted(pages, "page"));
        return Some((what, "copy the file again, or install its package; the rest is written"));
    }
    if lost > 0 {
        return Some((format!("{lost} of {}", counted(saved + lost, "kernel")), build));
    }
    if let Some(log) = log {
        let hint = "copy both files, let SQLite bring them together with `sqlite3 COPY 'pragma \
                    wal_checkpoint(truncate)'`, and repair the copy";
        return Some((format!("what only `{}` has", log.display()), hint));
    }
    (saved == 0 && !repaired.blank).then(|| {
        let hint =
            "nothing in it has the shape of MIOpen's rows: check that it is a kernel database";
        ("a single kernel".to_owned(), hint)
    })
}

/// Raises how many files may be open at a time as far as everybody may.
fn open_many() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where that is refused, the file that is one too many tells.
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
}

/// Does what takes long, with a bar that shows how far it is.
fn watched<T>(
    what: &'static str,
    options: &CopyOptions<'_>,
    cancel: &Cancel,
    output: &Output,
    run: impl FnOnce(&CopyOptions<'_>, &Bar) -> T,
) -> T {
    let bar = Bar::new(output, what, Unit::Kernels, 0);
    let progress = |done| bar.progress(done);
    let cancelled = || cancel.is_cancelled();
    let mut options = *options;
    options.cancelled = Some(&cancelled);
    if bar.is_wanted() {
        options.progress = Some(&progress);
    }
    run(&options, &bar)
}

fn said(out: &Path, written: &Written, more: &str, output: &Output) {
    let text = format!(
        "{}: {}, {} {more}",
        out.display(),
        counted(written.rows, "kernel"),
        size(written.file_bytes)
    );
    output.say(text.trim_end());
}

/// A user's kdb is written to by MIOpen, which can't insert through a view.
fn check_layout(out: &Path, dense: bool) -> Result {
    if dense && out.extension().is_some_and(|extension| extension == "ukdb") {
        return Err(fail::usage(
            format!("failed to lay out `{}` densely: MIOpen writes to a user's kdb", out.display()),
            "the dense layout is for installed files: name it .kdb, or give --layout miopen",
        ));
    }
    Ok(())
}

fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path| std::fs::canonicalize(path).ok();
    real(a).is_some_and(|a| Some(a) == real(b))
}
