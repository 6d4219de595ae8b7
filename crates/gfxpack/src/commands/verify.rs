//! `verify`: packages, repositories and directories of packages, down to
//! every kernel.

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_package::signing::Keyring;
use gfxpack_package::verify::{Inspected, Inspector, Subject, Verified, Verifier, VerifyError};
use gfxpack_package::{Finding, Remedy};
use gfxpack_pipeline::packages;
use gfxpack_tuning::{DatabaseName, Severity};
use serde_json::json;

use crate::args::{MaxObject, Verify};
use crate::commands::kdb::verify_options;
use crate::fail::{Failure, Result, in_full};
use crate::output::{Output, counted, harmless, shown};

/// Findings of a tuning database that are told one by one.
const TUNING_FINDINGS: usize = 20;

/// Checks each path, and tells all findings before it fails.
pub(crate) fn run(args: &Verify, output: &Output) -> Result {
    let keyring = args.keyring.as_deref().map(Keyring::open).transpose()?;
    let mut results =
        Results { output, unsound: Vec::new(), remedies: BTreeSet::new(), unread: None };
    let mut verifier = Verifier {
        keyring: keyring.as_ref(),
        inspector: &mut Databases { max_object: args.max_object },
        report: &mut |result| match result {
            Ok(verified) => results.tell(&verified),
            Err(error) => results.note(error),
        },
    };
    args.paths.iter().for_each(|path| verifier.path(path));
    results.end()
}

/// What was found so far.
struct Results<'a> {
    output: &'a Output,
    /// What has findings, for the last line.
    unsound: Vec<String>,
    /// What helps against all of them.
    remedies: BTreeSet<Remedy>,
    /// What could not be looked at last, and is still to be told.
    unread: Option<VerifyError>,
}

impl Results<'_> {
    /// Keeps what could not be looked at: the others are checked all the same.
    fn note(&mut self, error: VerifyError) {
        if let Some(before) = self.unread.replace(error) {
            self.output.warn(&in_full(&before));
        }
    }

    fn end(self) -> Result {
        match self.unread {
            Some(error) if self.unsound.is_empty() => Err(error.into()),
            None if self.unsound.is_empty() => Ok(()),
            error => {
                error.iter().for_each(|error| self.output.warn(&in_full(error)));
                let hints: Vec<&str> = self.remedies.iter().map(|remedy| remedy.hint()).collect();
                let (what, hint) = (self.unsound.join(", "), hints.join("; "));
                Err(Failure::Unverified { what, hint })
            }
        }
    }

    /// Tells what is wrong with one file, or that it is sound. Names in it are
    /// somebody's, and a line is a file's.
    fn tell(&mut self, verified: &Verified) {
        let Verified { path, findings, .. } = verified;
        let line = |text: &str| {
            if !self.output.json {
                self.output.data(&harmless(&format!("{}: {text}", path.display())));
            }
        };
        for Finding { detail, remedy } in findings {
            self.output.message("finding", &json!({ "file": shown(path), "detail": detail }));
            line(detail);
            self.remedies.insert(*remedy);
        }
        if findings.is_empty() {
            line(&sound(verified.subject));
        } else {
            self.unsound.push(format!("`{}`", path.display()));
        }
        let body = json!({ "file": shown(path), "sound": findings.is_empty(), "findings": findings.len() });
        self.output.message("verified", &body);
    }
}

fn sound(subject: Subject) -> String {
    match subject {
        Subject::Package { files, entries } => {
            format!("sound, {}, {}", counted(files, "file"), counted(entries, "kernel"))
        }
        Subject::Checksums => "sound, all files are what it says".to_owned(),
        Subject::Index => "sound, and so is every package it lists".to_owned(),
    }
}

/// Looks into the kernel, performance and find databases of packages.
struct Databases {
    max_object: MaxObject,
}

impl Inspector for Databases {
    fn is_wanted(&self, path: &str) -> bool {
        path.ends_with(".kdb") || DatabaseName::of(Path::new(path)).is_some()
    }

    fn inspect(&mut self, copy: &Path) -> Inspected {
        let inspected = if copy.as_os_str().as_encoded_bytes().ends_with(b".kdb") {
            kdb(copy, self.max_object)
        } else {
            tuning(copy).map(|findings| Inspected { findings, entries: 0 }).map_err(Into::into)
        };
        let failed = |error| Inspected { findings: vec![format!("{error:#}")], entries: 0 };
        inspected.unwrap_or_else(failed)
    }
}

/// What is wrong with a performance or find database.
fn tuning(path: &Path) -> Result<Vec<String>, gfxpack_tuning::ReadError> {
    let mut findings = Vec::new();
    let linted = gfxpack_tuning::lint(path, None, |finding| {
        if finding.severity == Severity::Error && findings.len() < TUNING_FINDINGS {
            let line = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            findings.push(format!("{line}{}", finding.message));
        }
    })?;
    let more = linted.errors - findings.len() as u64;
    if more > 0 {
        findings.push(format!("{more} more findings"));
    }
    Ok(findings)
}

/// What is wrong with a kdb, and how many kernels it has.
fn kdb(path: &Path, max_object: MaxObject) -> Result<Inspected> {
    let target = packages::target_of(path)?;
    let report = gfxpack_kdb::verify(path, Some(&target), &verify_options(max_object))?;
    let mut findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let more = report.total_findings() - findings.len() as u64;
    if more > 0 {
        findings.push(format!("{more} more findings"));
    }
    Ok(Inspected { findings, entries: report.rows })
}
