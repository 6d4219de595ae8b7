//! `kdb`: inspects kdbs, and makes new ones from them.

pub(crate) mod check;

use std::path::{Path, PathBuf};

use gfxpack_kdb::{
    Blob, Change, Conflict, CopyOptions, FindingClass, ReadError, Reader, RowInfo, VerifyOptions,
};
use gfxpack_model::{KernelKey, Language, Target};
use gfxpack_pipeline::destination;
use gfxpack_pipeline::progress::{Step, Unit};
use gfxpack_pipeline::text::key_in_words;
use gfxpack_process::open_many;
use serde_json::{Value, json};

use crate::args::Kdb;
use crate::checked_files::CheckedFiles;
use crate::context::Context;
use crate::fail::{Error, ErrorKind, Result};
use crate::output::{Output, counted, display, harmless, if_any, joined, message, size, to_file};
use crate::progress::Reporter;

pub(crate) fn run(kdb: Kdb, context: &Context) -> Result {
    let Context { output, .. } = context;
    match kdb {
        Kdb::Verify { files, target } => {
            verify_all(&files, target.as_ref(), context.cancellable()?)
        }
        Kdb::Check(args) => check::run(&args, context.cancellable()?),
        Kdb::Info { files } => files.iter().try_for_each(|file| info(file, output)),
        Kdb::List { file, filter, keys } => list(&file, filter.as_deref(), keys, output),
        Kdb::Get { file, name, args, out } => {
            let key = KernelKey { kernel_name: name, kernel_args: args };
            let object = Reader::open(&file)?.get(&key)?.ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    format!("failed to find {} in `{}`", key_in_words(&key), file.display()),
                    "keys are compared byte for byte, leading blanks and ` -mcpu=` included; \
                     `gfxpack kdb list --filter TEXT` shows them",
                )
            })?;
            match to_file(out.as_ref()) {
                Some(path) => destination::replace(path, object),
                None => {
                    output.bytes(&object);
                    Ok(())
                }
            }
        }
        Kdb::Merge { files, out, on_conflict, blob } => {
            merge(&files, &out, on_conflict, blob, context.cancellable()?)
        }
        Kdb::Diff { old, new, exit_code } => diff(&old, &new, exit_code, output),
    }
}

fn verify_all(files: &[PathBuf], target: Option<&Target>, context: &Context) -> Result {
    let Context { cancel, output, .. } = context;
    let mut checked = CheckedFiles::new(output);
    for file in files {
        match verify(file, target, context) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => checked.unsound(file, found.into_iter().map(FindingClass::hint)),
            Err(error) if cancel.is_cancelled() => return Err(error.into()),
            // Continue with the other files.
            Err(error) => checked.unread(error),
        }
    }
    checked.finish()
}

/// Prints every finding, and returns their classes.
fn verify(
    file: &Path,
    target: Option<&Target>,
    context: &Context,
) -> Result<Vec<FindingClass>, ReadError> {
    let Context { cancel, output, .. } = context;
    let report = {
        let reporter = Reporter::new(context);
        let step = Step::new(&reporter, "verifying", Unit::Kernels, 0);
        let progress = |done, total| step.at(done, total);
        let cancelled = || cancel.is_cancelled();
        let mut options = VerifyOptions::default();
        options.cancelled = Some(&cancelled);
        options.progress = Some(&progress);
        gfxpack_kdb::verify(file, target, &options)?
    };
    for finding in &report.findings {
        message!(output, "finding", {
            "file": display(file), "class": finding.class.name(), "row": finding.row,
            "key": finding.key, "detail": finding.detail,
        });
        output.text(&harmless(&format!("{}: {finding}", file.display())));
    }
    let listed = report.findings.len() as u64;
    let more = report.total_findings() - listed;
    let target = report.target.as_ref().map(ToString::to_string);
    message!(output, "verified", {
        "file": display(file), "sound": report.is_sound(), "rows": report.rows,
        "findings": report.total_findings(), "target": target,
    });
    if more > 0 {
        output.text(&format!("{}: {more} more findings", file.display()));
    }
    if report.is_sound() && !output.quiet {
        output.text(&format!(
            "{}: sound, {} for {}",
            file.display(),
            counted(report.rows, "kernel"),
            target.as_deref().unwrap_or("any target (its name says none)")
        ));
    }
    Ok(report.counts.into_keys().collect())
}

fn info(file: &Path, output: &Output) -> Result {
    let info = Reader::open(file)?.info()?;
    let name = |language: &Option<Language>| {
        language.map_or("other".to_owned(), |language| language.to_string())
    };
    let languages = info.languages.iter().map(|(language, count)| (name(language), json!(count)));
    let languages: serde_json::Map<String, Value> = languages.collect();
    let miopen = info.header.miopen_version;
    let miopen = miopen.is_known().then(|| miopen.to_string());
    let body = json!({
        "file": display(file), "file_bytes": info.file_bytes, "rows": info.rows,
        "kernel_names": info.kernel_names,
        "languages": languages, "devices": info.devices,
        "journal": info.header.journal.name(), "page_size": info.header.page_size,
        "sqlite_version": info.header.sqlite_version,
        "miopen_version": miopen.as_ref(),
    });
    output.message("kdb-info", &body);
    output.text(&file.display().to_string());
    let line = |label: &str, value: &str| {
        output.text(&harmless(&format!("  {label:<10} {value}")));
    };
    line("file", &size(info.file_bytes));
    let (rows, names) = (info.rows, info.kernel_names);
    let languages = joined(languages.iter().map(|(language, count)| format!("{count} {language}")));
    line("kernels", &format!("{rows} of {names} sources ({languages})"));
    let devices = info.devices.iter().map(|(device, count)| {
        format!("{} ({count})", if device.is_empty() { "none" } else { device })
    });
    line("devices", &joined(devices));
    line("journal", info.header.journal.name());
    if let Some(miopen) = miopen {
        line("for MIOpen", &miopen);
    }
    Ok(())
}

/// A key as two words of a shell, which `lookup` and `kdb get` take.
fn as_words(key: &KernelKey) -> String {
    shlex::try_join([&*key.kernel_name, &*key.kernel_args]).unwrap_or_else(|_| key.to_string())
}

fn list(file: &Path, filter: Option<&str>, keys: bool, output: &Output) -> Result {
    Reader::open(file)?.for_each_row(|entry| {
        let text = entry.key.to_string();
        if output.is_broken() || filter.is_some_and(|filter| !text.contains(filter)) {
            return Ok::<(), ReadError>(());
        }
        if keys {
            output.raw(&json!(entry.key).to_string());
            return Ok(());
        }
        message!(output, "row", {
            "kernel_name": entry.key.kernel_name, "kernel_args": entry.key.kernel_args,
            "stored_bytes": entry.stored_bytes, "object_bytes": entry.object_bytes,
            "compressed": entry.compressed, "md5": entry.hash,
        });
        output.text(&as_words(&entry.key));
        Ok(())
    })?;
    Ok(())
}

fn merge(
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

fn diff(old: &Path, new: &Path, exit_code: bool, output: &Output) -> Result {
    let found = gfxpack_kdb::diff(old, new, |change| {
        let (sign, kind, old, new) = match &change {
            Change::Added(new) => ('+', "added", None, Some(new)),
            Change::Removed(old) => ('-', "removed", Some(old), None),
            Change::Changed { old, new } => ('~', "changed", Some(old), Some(new)),
            Change::Recoded { old, new } => ('=', "recoded", Some(old), Some(new)),
        };
        let Some(entry) = new.or(old) else { return Ok(()) };
        message!(output, "difference", {
            "change": kind, "key": entry.key, "old": old.map(side), "new": new.map(side),
        });
        // Different bytes of the same code object only matter to machines.
        if sign != '=' || output.verbose {
            output.text(&format!("{sign} {}", as_words(&entry.key)));
        }
        Ok::<(), ReadError>(())
    })?;
    message!(output, "diff", {
        "old": display(old), "new": display(new), "same": found.same, "recoded": found.recoded,
        "added": found.added, "removed": found.removed, "changed": found.changed,
    });
    let recoded = if_any(found.recoded, |count| format!(" ({count} stored otherwise)"));
    output.info(&format!(
        "{} added, {} removed, {} changed, {} the same{recoded}",
        found.added, found.removed, found.changed, found.same
    ));
    if exit_code && !found.is_none() {
        let differences = counted(found.added + found.removed + found.changed, "difference");
        let message = format!("the kdbs differ: {differences}");
        return Err(Error::new(ErrorKind::Unsound, message, "each is listed above"));
    }
    Ok(())
}

fn side(entry: &RowInfo) -> Value {
    json!({
        "md5": entry.hash, "stored_bytes": entry.stored_bytes,
        "object_bytes": entry.object_bytes, "compressed": entry.compressed,
    })
}
