//! `verify`: packages, repositories and directories of packages, down to
//! every kernel.

use std::collections::BTreeSet;

use gfxpack_package::signing::Keyring;
use gfxpack_package::verify::{Subject, Verified, Verifier, VerifyError};
use gfxpack_package::{Finding, Remedy};
use gfxpack_pipeline::error::Error;
use gfxpack_pipeline::inspector::DatabaseInspector;
use serde_json::json;

use crate::args::Verify;
use crate::fail::{Result, in_full};
use crate::output::{Output, counted, harmless, shown};

/// Checks each path, and tells all findings before it fails.
pub(crate) fn run(args: &Verify, output: &Output) -> Result {
    let keyring = args.keyring.as_deref().map(Keyring::open).transpose()?;
    let mut results =
        Results { output, unsound: Vec::new(), remedies: BTreeSet::new(), unread: None };
    let mut verifier = Verifier {
        keyring: keyring.as_ref(),
        inspector: &mut DatabaseInspector { max_object_bytes: args.max_object.bytes },
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
                Err(Error::Unverified { what, hint }.into())
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
