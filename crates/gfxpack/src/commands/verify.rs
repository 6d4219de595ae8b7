//! `verify`: checks packages, repositories and directories of packages, down to
//! every kernel.

use gfxpack_package::signing::Keyring;
use gfxpack_package::verify::{Subject, Verified, Verifier};
use gfxpack_package::{Finding, Remedy};
use gfxpack_pipeline::checked_files::CheckedFiles;
use gfxpack_pipeline::inspector::DatabaseInspector;

use crate::args::Verify;
use crate::fail::{Result, in_full};
use crate::output::{Output, counted, display, harmless, message};

/// Checks each path, and reports all findings before it fails.
pub(crate) fn run(args: &Verify, output: &Output) -> Result {
    let keyring = args.keyring.as_deref().map(Keyring::open).transpose()?;
    let mut checked = CheckedFiles::default();
    let mut verifier = Verifier {
        keyring: keyring.as_ref(),
        inspector: &mut DatabaseInspector,
        report: &mut |result| match result {
            Ok(verified) => report_file(&verified, &mut checked, output),
            // Continue with the other files.
            Err(error) => {
                checked.unread(error).iter().for_each(|before| output.warn(&in_full(before)));
            }
        },
    };
    args.paths.iter().for_each(|path| verifier.path(path));
    checked.finish(|remedy: &Remedy| remedy.hint(), |error| output.warn(&in_full(error)))
}

/// Reports the findings of one file, or that it is sound. Control characters in
/// names are escaped, and each finding is one line.
fn report_file(verified: &Verified, checked: &mut CheckedFiles<Remedy>, output: &Output) {
    let Verified { path, findings, .. } = verified;
    let line = |text: &str| {
        output.text(&harmless(&format!("{}: {text}", path.display())));
    };
    for Finding { detail, .. } in findings {
        message!(output, "finding", { "file": display(path), "detail": detail });
        line(detail);
    }
    if findings.is_empty() {
        if !output.quiet {
            line(&sound(verified.subject));
        }
    } else {
        checked.unsound(path, findings.iter().map(|finding| finding.remedy));
    }
    message!(output, "verified", {
        "file": display(path), "sound": findings.is_empty(), "findings": findings.len(),
    });
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
