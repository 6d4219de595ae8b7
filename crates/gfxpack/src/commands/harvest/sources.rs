//! Reads the inputs of a harvest, with progress, and reports on each file.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use gfxpack_harvest::log::Seen;
use gfxpack_harvest::{ContentKind, FileReport, Input, Options, list};
use gfxpack_pipeline::progress::{Step, Unit};
use gfxpack_pipeline::skipped_lines;

use crate::args::Sources;
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, display, joined, message};
use crate::progress::Reporter;

/// The files below the given paths, or standard input.
fn inputs(sources: &Sources) -> Result<Vec<Input>> {
    if sources.paths.is_empty() && std::io::stdin().is_terminal() {
        return Err(fail::usage(
            "failed to start: nothing is given to harvest",
            "name logs, kdbs or directories, or pipe a log in: app 2>&1 | gfxpack harvest",
        ));
    }
    let stdin = [PathBuf::from("-")];
    let paths = if sources.paths.is_empty() { &stdin[..] } else { &sources.paths };
    let inputs = list(paths)?;
    if inputs.is_empty() {
        return Err(fail::usage(
            format!("failed to find a file in {}", names(sources)),
            "check the path",
        ));
    }
    Ok(inputs)
}

/// Reads the inputs with a progress bar, and reports on each file.
///
/// # Errors
/// If files can't be read, unless `keep_going` is set, or with `strict` lines.
pub(super) fn read<T>(
    sources: &Sources,
    context: &Context,
    read: impl FnOnce(&[Input], Options<'_>) -> Result<(T, Vec<FileReport>)>,
) -> Result<(T, Vec<FileReport>)> {
    let Context { cancel, output, .. } = context;
    let inputs = inputs(sources)?;
    let known = !inputs.contains(&Input::Stdin);
    let total = if known { inputs.iter().map(Input::bytes).sum() } else { 0 };
    let reporter = Reporter::new(context);
    let step = Step::new(&reporter, "reading", Unit::Bytes, total);
    let (add, cancelled) = (|bytes| step.add(bytes), || cancel.is_cancelled());
    let options = Options { read: Some(&add), cancelled: Some(&cancelled) };
    let (found, files) = read(&inputs, options)?;
    drop(step);
    report_files(&files, sources, output)?;
    Ok((found, files))
}

/// The given paths, for display.
pub(super) fn names(sources: &Sources) -> String {
    match &sources.paths[..] {
        [] => "the standard input".to_owned(),
        paths => joined(paths.iter().map(|path| format!("`{}`", path.display()))),
    }
}

/// What helps if nothing was found in the files; `otherwise` if nothing else is wrong with them.
pub(super) fn nothing_hint(files: &[FileReport], otherwise: &str) -> String {
    if let Some(skipped) = files.iter().find_map(|file| file.skipped.iter().next()) {
        return skipped.hint.to_owned();
    }
    let seen = |what| files.iter().any(|file| file.seen == what);
    if !seen(Seen::Text) && !seen(Seen::Messages) {
        return "nothing is in there: see where the program writes, or get the file again"
            .to_owned();
    }
    if !seen(Seen::Messages) {
        return format!("no line is of MIOpen: see whether stderr is in it, 2>&1; {otherwise}");
    }
    otherwise.to_owned()
}

/// Reports on each file.
///
/// # Errors
/// If files could not be read, unless `keep_going` is set, or with `strict` lines.
fn report_files(files: &[FileReport], sources: &Sources, output: &Output) -> Result {
    for file in files {
        if sources.strict {
            skipped_lines::refuse(&file.name, &file.skipped)?;
        }
        message!(output, "harvested-file", {
            "file": display(&file.name), "kind": file.kind.name(), "lines": file.lines, "told": file.used,
            "skipped": skipped_lines::message(&file.skipped), "error": file.error.as_ref().map(|error| fail::in_full(error)),
        });
        if output.verbose {
            let unit = if matches!(file.kind, ContentKind::Kdb | ContentKind::Ukdb) {
                "rows"
            } else {
                "lines"
            };
            output.info(&format!(
                "{}: {}, {} of {} {unit} used",
                file.name,
                file.kind.name(),
                file.used,
                file.lines
            ));
        }
        for skipped in file.skipped.iter() {
            output.show_warning(&skipped_lines::warning(&file.name, skipped));
        }
    }
    let mut errors = files.iter().filter_map(|file| file.error.as_ref());
    let fatal = if sources.keep_going { None } else { errors.next() };
    errors.for_each(|error| output.warn(&fail::in_full(error)));
    fatal.map_or(Ok(()), |error| {
        Err(fail::usage(fail::in_full(error), error.hint().unwrap_or_default()))
    })
}
