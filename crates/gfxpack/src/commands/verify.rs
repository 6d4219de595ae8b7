//! `verify`: checks packages, repositories and directories of packages, down to
//! every kernel; and files that others built, for code that GPUs lack.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use gfxpack_fatbin::{Checker, Error as CodeError};
use gfxpack_package::Finding;
use gfxpack_package::read::{self, PackageKind};
use gfxpack_package::signing::Keyring;
use gfxpack_package::verify::{Subject, Verified, Verifier};
use gfxpack_pipeline::error::unsound;
use gfxpack_pipeline::inspector::PackageInspector;
use gfxpack_process::SystemTool;
use gfxpack_runtime::Environment;
use walkdir::WalkDir;

use super::detect::{detect, no_gpu};
use super::slim::{entries, failed};
use crate::args::Verify;
use crate::checked_files::CheckedFiles;
use crate::fail::{self, Error, ErrorKind, Result, in_full};
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
        return Err(match paths.iter().find(|path| path.is_dir()) {
            Some(dir) => fail::usage(
                format!("failed to find a package in `{}`", dir.display()),
                "kdbs are verified by `gfxpack kdb verify`; to check libraries for a GPU's code, \
                 say which: --target gfx1100",
            ),
            None => no_gpu("say for which GPU these files are: --target gfx1100"),
        });
    }
    let (mut all, mut owners) = (0, BTreeMap::new());
    for path in paths {
        let mut checker = Checker::new(&devices);
        let kind = PackageKind::from_name(path);
        match kind.filter(|_| path.is_file()) {
            Some(kind) => add_package(path, kind, &mut checker)?,
            None => add_tree(path, &mut checker)?,
        }
        let (with_code, gaps) = (checker.with_code, checker.finish());
        for gap in &gaps {
            let owner = match kind {
                Some(_) => None,
                None => owners.entry(gap.path.clone()).or_insert_with(|| owner(&gap.path)).clone(),
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

/// Has all files below a directory checked, or a file.
pub(super) fn add_tree(root: &Path, checker: &mut Checker<'_>) -> Result {
    for entry in entries(root) {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type().is_file() || entry.depth() == 0 && path.is_file() {
            let file = File::open(path).map_err(fail::io("read", path))?;
            checker.file(path, &file).map_err(failed(path))?;
        } else if entry.file_type().is_symlink() {
            checker.name(path);
        }
    }
    Ok(())
}

fn add_package(path: &Path, kind: PackageKind, checker: &mut Checker<'_>) -> Result {
    let report = read::check(path, kind, &mut |inside, bytes| {
        look(Path::new(inside), bytes, checker)
            .map_err(|error| Error::without_hint(ErrorKind::Internal, error))
    })?;
    for link in &report.links {
        checker.name(Path::new(link));
    }
    match report.findings.into_iter().next() {
        Some(damage) => Err(unsound(format!("`{}`: {damage}", path.display()))),
        None => Ok(()),
    }
}

/// Looks at a file in a package, of which a copy is made if it has code.
fn look(path: &Path, bytes: &mut dyn Read, checker: &mut Checker<'_>) -> Result<(), CodeError> {
    /// Bytes that tell what a file is.
    const HEAD: u64 = 64;
    let mut head = Vec::new();
    bytes.take(HEAD).read_to_end(&mut head)?;
    if !Checker::is_wanted(path, &head) {
        checker.name(path);
        return Ok(());
    }
    let mut copy = tempfile::tempfile()?;
    io::copy(&mut head.as_slice().chain(bytes), &mut copy)?;
    copy.seek(SeekFrom::Start(0))?;
    checker.file(path, &copy)
}

/// The package that installed a file, or files of this pattern; `None` if none did.
fn owner(path: &Path) -> Option<String> {
    const DPKG: SystemTool = SystemTool { program: "dpkg", provided_by: "dpkg" };
    const RPM: SystemTool = SystemTool { program: "rpm", provided_by: "rpm" };
    let directory = path.parent()?.canonicalize().ok()?;
    let path = directory.join(path.file_name()?);
    let text = path.to_str()?;
    if let Ok(found) = DPKG.output(&["-S", text], &directory, &[]) {
        let line = String::from_utf8_lossy(&found).lines().next()?.to_owned();
        return Some(line.split([':', ',']).next()?.to_owned());
    }
    let found = RPM.output(&["-qf", "--queryformat", "%{NAME}\n", text], &directory, &[]).ok()?;
    Some(String::from_utf8_lossy(&found).lines().next()?.to_owned())
}

/// Checks packages, and reports all findings before it fails.
fn packages_of(paths: &[&PathBuf], args: &Verify, output: &Output) -> Result {
    let keyring = args.keyring.as_deref().map(Keyring::open).transpose()?;
    let mut checked = CheckedFiles::new(output);
    let mut verifier = Verifier {
        keyring: keyring.as_ref(),
        inspector: &mut PackageInspector::Databases,
        report: &mut |result| match result {
            Ok(verified) => report_file(&verified, &mut checked, output),
            // Continue with the other files.
            Err(error) => checked.unread(error),
        },
    };
    paths.iter().for_each(|path| verifier.path(path));
    checked.finish()
}

/// Reports the findings of one file, or that it is sound. Control characters in
/// names are escaped, and each finding is one line.
fn report_file(verified: &Verified, checked: &mut CheckedFiles<'_>, output: &Output) {
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
        checked.unsound(path, findings.iter().map(|finding| finding.remedy.hint()));
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
