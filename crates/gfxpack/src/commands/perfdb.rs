//! `perfdb`: merges, checks and counts performance and find databases.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use gfxpack_model::Target;
use gfxpack_pipeline::checked_files::CheckedFiles;
use gfxpack_pipeline::destination;
use gfxpack_pipeline::tuning_text::stats_in_words;
use gfxpack_tuning::{DatabaseName, MergeError, Overlaid};

use crate::args::{parse_target, whole_file};
use crate::fail::{Result, in_full};
use crate::output::{Output, counted, display, if_any, message};
use crate::tuning_findings;

#[derive(Debug, Subcommand)]
pub(crate) enum Perfdb {
    /// Merge databases of one kind and device, each laid over those before it:
    /// the system's first, then users', whose entries win
    Merge {
        /// The databases, whose names say what they are: gfx906_60.db.txt
        #[arg(required = true, value_name = "FILE")]
        inputs: Vec<PathBuf>,
        /// The database to write; in a directory, under the name that MIOpen
        /// looks for in the system
        #[arg(long, short, value_name = "FILE|DIR", value_parser = whole_file())]
        out: PathBuf,
        /// Merge databases of different devices too
        #[arg(long)]
        any_device: bool,
        /// Leave out what MIOpen can't read
        #[arg(long)]
        keep_going: bool,
    },
    /// Report what is wrong with databases: lines that MIOpen skips, records
    /// that it never finds, names that it never asks for
    Lint {
        /// The databases
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// The device they must be for
        #[arg(long, short, value_name = "TARGET", value_parser = parse_target)]
        target: Option<Target>,
        /// Fail for warnings too
        #[arg(long)]
        strict: bool,
    },
    /// Count problems, solvers, and which solver is the fastest
    Stats {
        /// The databases
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

/// Runs a `perfdb` sub-command.
pub(crate) fn run(command: &Perfdb, output: &Output) -> Result {
    match command {
        Perfdb::Merge { inputs, out, any_device, keep_going } => {
            merge(inputs, out, *any_device, *keep_going, output)
        }
        Perfdb::Lint { files, target, strict } => lint(files, target.as_ref(), *strict, output),
        Perfdb::Stats { files } => files.iter().try_for_each(|file| stats(file, output)),
    }
}

fn merge(
    inputs: &[PathBuf],
    out: &Path,
    any_device: bool,
    keep_going: bool,
    output: &Output,
) -> Result {
    let mut out = out.to_owned();
    if out.is_dir() {
        let first = &inputs[0];
        let name = DatabaseName::from_path(first).ok_or_else(|| MergeError::Name(first.clone()))?;
        out.push(name.of_system().file_name());
    }
    let real = destination::database(&out)?;
    let mut reported = 0;
    let merged = gfxpack_tuning::merge(inputs, &real, any_device, |path, line, fault| {
        if keep_going {
            reported += 1;
            output.warn(&format!("`{}`: line {line}: {fault}", path.display()));
        }
        keep_going
    })?;
    let Overlaid { added, changed, same, .. } = merged.overlaid;
    message!(output, "perfdb-merged", {
        "file": display(&out), "kind": merged.kind.name(), "records": merged.records, "added": added,
        "changed": changed, "same": same, "left_out": merged.faults,
    });
    if merged.faults > reported {
        let count = merged.faults - reported;
        output.warn(&format!(
            "left out {} of perf_db that {} to no problem",
            counted(count, "row"),
            if count == 1 { "belongs" } else { "belong" }
        ));
    }
    output.info(&format!(
        "{} records, {added} added, {changed} changed, {same} the same: {}",
        merged.records,
        out.display()
    ));
    Ok(())
}

fn lint(files: &[PathBuf], target: Option<&Target>, strict: bool, output: &Output) -> Result {
    let hint = "each finding above says what is wrong, and where";
    let mut checked = CheckedFiles::default();
    for file in files {
        let list = |finding| tuning_findings::list(file, &finding, output);
        let linted = match gfxpack_tuning::lint(file, target, list) {
            Ok(linted) => linted,
            // Continue with the other files.
            Err(error) => {
                checked.unread(error).iter().for_each(|before| output.warn(&in_full(before)));
                continue;
            }
        };
        let (errors, warnings) = (linted.errors, linted.warnings);
        message!(output, "perfdb-linted", {
            "file": display(file), "records": linted.records, "errors": errors, "warnings": warnings,
        });
        if errors > 0 || (strict && warnings > 0) {
            checked.unsound(file, [hint]);
        } else {
            let warned = if_any(warnings, |warnings| format!(", {warnings} warnings"));
            output.text(&format!("{}: sound, {} records{warned}", file.display(), linted.records));
        }
    }
    checked.finish(|hint| hint, |error| output.warn(&in_full(error)))
}

fn stats(file: &Path, output: &Output) -> Result {
    let name = DatabaseName::from_path(file).ok_or_else(|| MergeError::Name(file.to_owned()))?;
    let stats = gfxpack_tuning::stats(file, &name)?;
    message!(output, "perfdb-stats", {
        "file": display(file), "kind": name.kind.name(), "target": name.target,
        "records": stats.records, "values": stats.values, "solvers": stats.solvers,
        "fastest": stats.fastest, "workspace_bytes": stats.workspace,
    });
    let lines = stats_in_words(file, &name, &stats, output.verbose);
    lines.iter().for_each(|line| output.text(line));
    Ok(())
}
