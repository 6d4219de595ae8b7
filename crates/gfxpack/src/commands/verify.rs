//! `verify`: checks packages, repositories and directories of packages, down to
//! every kernel; and files that others built, for code that GPUs lack.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use gfxpack_package::read::PackageKind;
use gfxpack_package::signing::Keyring;
use gfxpack_package::verify::{Subject, Verified, Verifier};
use gfxpack_package::{Finding, Remedy};
use gfxpack_pipeline::checked_files::CheckedFiles;
use gfxpack_pipeline::device_code::{Checked, check, owner};
use gfxpack_pipeline::inspector::DatabaseInspector;
use gfxpack_runtime::Environment;
use walkdir::WalkDir;

use super::detect::{detect, no_gpu};
use crate::args::Verify;
use crate::fail::{Error, ErrorKind, Result, in_full};
use crate::output::{Output, counted, display, harmless, message};

/// Checks each path, and reports all findings before it fails.
pub(crate) fn run(args: &Verify, output: &Output) -> Result {
    let (code, packages): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.paths.iter().partition(|path| !args.target.is_empty() || !is_package(path));
    let checked = packages_of(&packages, args, output);
    let found = if code.is_empty() { Ok(()) } else { device_code(&code, args, output) };
    match (checked, found) {
        (Err(error), Err(other)) => {
            output.warn(&in_full(&error));
            Err(other)
        }
        (checked, found) => checked.and(found),
    }
}

/// Whether it is to be checked as a package, or as a directory of packages: neither a file that
/// begins like device code or a library, nor a directory in which no packages are.
fn is_package(path: &Path) -> bool {
    if !path.is_dir() {
        // A pipe is not opened.
        if PackageKind::from_name(path).is_some() || !path.is_file() {
            return true;
        }
        let mut begin = [0; 4];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
        return read.is_err() || !CODE.contains(&&begin);
    }
    let below = WalkDir::new(path).max_depth(4).into_iter().flatten().take(MANY);
    below.into_iter().any(|entry| {
        let path = entry.path();
        PackageKind::from_name(path).is_some() || INDEXES.iter().any(|name| path.ends_with(name))
    })
}

/// How files with device code begin: libraries, bundles, compressed ones, and kpack archives.
const CODE: [&[u8; 4]; 4] = [b"\x7fELF", b"__CL", b"CCOB", b"KPAK"];
/// What tells a directory of packages from any other, apart from packages.
const INDEXES: [&str; 4] = ["SHA256SUMS", "dists", "repodata", "Packages"];
/// In so many files, packages would have been seen.
const MANY: usize = 10_000;

/// Checks that there is code for each GPU, and reports what is missing.
fn device_code(paths: &[&PathBuf], args: &Verify, output: &Output) -> Result {
    let mut devices = args.target.clone();
    if devices.is_empty() {
        let detection = detect(&args.hardware, &Environment::read())?;
        devices.extend(detection.devices.into_iter().map(|device| device.target_id));
        devices.sort();
        devices.dedup();
    }
    if devices.is_empty() {
        return Err(no_gpu());
    }
    let (mut all, mut owners) = (0, BTreeMap::new());
    for path in paths {
        let Checked { with_code, gaps } = check(path, &devices)?;
        let is_installed = PackageKind::from_name(path).is_none();
        for gap in &gaps {
            let owner = if is_installed {
                owners.entry(gap.path.clone()).or_insert_with(|| owner(&gap.path)).clone()
            } else {
                None
            };
            let target = gap.target.as_ref().map(ToString::to_string);
            message!(output, "gap", {
                "file": display(&gap.path), "target": target, "detail": gap.detail, "package": owner,
            });
            let target = target.map(|target| format!("{target}: ")).unwrap_or_default();
            let owner = owner.map(|owner| format!(" (package {owner})")).unwrap_or_default();
            let line = format!("{}: {target}{}{owner}", gap.path.display(), gap.detail);
            output.text(&harmless(&line));
        }
        let gaps = gaps.len();
        all += gaps;
        message!(output, "checked", { "file": display(path), "with_code": with_code, "gaps": gaps });
        if gaps == 0 && !output.quiet {
            let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
            let files = counted(with_code, "file");
            let line = format!("{}: {files} with code for {}", path.display(), devices.join(", "));
            output.text(&harmless(&line));
        }
    }
    match all {
        0 => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Unsound,
            format!("found {}", counted(all, "gap")),
            "report it to who built the files; HIP up to July 2026 gives no code to any GPU if the \
             first one has none: then HIP_VISIBLE_DEVICES without that one helps",
        )),
    }
}

/// Checks packages, and reports all findings before it fails.
fn packages_of(paths: &[&PathBuf], args: &Verify, output: &Output) -> Result {
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
    paths.iter().for_each(|path| verifier.path(path));
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
