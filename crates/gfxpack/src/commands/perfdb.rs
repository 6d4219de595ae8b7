//! `perfdb`: merges and checks performance and find databases.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use gfxpack_pipeline::destination;
use gfxpack_tuning::{DatabaseName, Overlaid};

use crate::args::whole_file;
use crate::checked_files::CheckedFiles;
use crate::fail::Result;
use crate::output::{Output, display, if_any, message};
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
    },
}

pub(crate) fn run(command: &Perfdb, output: &Output) -> Result {
    match command {
        Perfdb::Merge { inputs, out, keep_going } => merge(inputs, out, *keep_going, output),
        Perfdb::Lint { files } => lint(files, output),
    }
}

fn merge(inputs: &[PathBuf], out: &Path, keep_going: bool, output: &Output) -> Result {
    let mut out = out.to_owned();
    if out.is_dir() {
        out.push(DatabaseName::of_file(&inputs[0])?.of_system().file_name());
    }
    let real = destination::database(&out)?;
    let merged = gfxpack_tuning::merge(inputs, &real, |path, line, fault| {
        if keep_going {
            output.warn(&format!("`{}`: line {line}: {fault}", path.display()));
        }
        keep_going
    })?;
    let Overlaid { added, changed, same, .. } = merged.overlaid;
    message!(output, "perfdb-merged", {
        "file": display(&out), "kind": merged.kind.name(), "records": merged.records, "added": added,
        "changed": changed, "same": same, "left_out": merged.faults,
    });
    output.info(&format!(
        "{} records, {added} added, {changed} changed, {same} the same: {}",
        merged.records,
        out.display()
    ));
    Ok(())
}

fn lint(files: &[PathBuf], output: &Output) -> Result {
    let hint = "each finding above says what is wrong, and where";
    let mut checked = CheckedFiles::new(output);
    for file in files {
        let list = |finding| tuning_findings::list(file, &finding, output);
        let linted = match gfxpack_tuning::lint(file, None, list) {
            Ok(linted) => linted,
            // Continue with the other files.
            Err(error) => {
                checked.unread(error);
                continue;
            }
        };
        let (errors, warnings) = (linted.errors, linted.warnings);
        message!(output, "perfdb-linted", {
            "file": display(file), "records": linted.records, "errors": errors, "warnings": warnings,
        });
        if errors > 0 {
            checked.unsound(file, [hint]);
        } else {
            let warned = if_any(warnings, |warnings| format!(", {warnings} warnings"));
            output.text(&format!("{}: sound, {} records{warned}", file.display(), linted.records));
        }
    }
    checked.finish()
}
