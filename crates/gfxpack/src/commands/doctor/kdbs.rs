//! The directories of installed kdbs, and whether each GPU has a kdb that can be used.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{KdbErrorKind, MiopenVersion, ReadError, Reader, VerifyOptions};
use gfxpack_model::{code_object, package_name};
use gfxpack_pipeline::hidden_kdbs;
use gfxpack_runtime::explain::{entries, target_of_kdb};
use gfxpack_runtime::{KdbDirectories, KdbDirectory, MiopenKdb, Target};

use super::Findings;
use crate::fail::in_full;
use crate::output::{counted, if_any, joined, size};

const DIRECTORY: &str = "directory";
const ABOUT: &str = "kdb";
/// Permission bit: everybody may write.
const OTHERS_WRITE: u32 = 0o002;

pub(super) fn check_directories(directories: &KdbDirectories, findings: &Findings<'_>) {
    for note in &directories.notes {
        findings.warning(DIRECTORY, note, "`gfxpack doctor --env` tells what each variable does");
    }
    if directories.system_disabled {
        // The check of variables has reported the one that disables it.
        return;
    }
    let there = directories.system.iter().filter(|directory| check_directory(directory, findings));
    if there.count() == 0 {
        let asked =
            directories.system.iter().map(|directory| format!("`{}`", directory.path.display()));
        findings.problem(
            DIRECTORY,
            format!("no directory of installed kdbs is there: {}", joined(asked)),
            "install a kernel package, or name its directory with MIOPEN_SYSTEM_DB_PATH",
        );
    }
}

/// Checks one directory; whether it exists.
fn check_directory(directory: &KdbDirectory, findings: &Findings<'_>) -> bool {
    let path = directory.path.as_path();
    let shown = format!("`{}` ({})", path.display(), directory.rule);
    let user = rustix::process::geteuid().as_raw();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
        Err(error) => {
            let hint = "check the permissions of the directories above it";
            findings.problem(DIRECTORY, format!("{shown} can't be read: {error}"), hint);
            return true;
        }
    };
    if !metadata.is_dir() {
        let hint = "a directory is looked for: name the one that the kdbs are in";
        findings.problem(DIRECTORY, format!("{shown} is no directory"), hint);
    } else if let Err(error) = fs::read_dir(path) {
        let hint = "`chmod go+rx` it, as its owner";
        findings.problem(DIRECTORY, format!("{shown} can't be read: {error}"), hint);
    } else if metadata.mode() & OTHERS_WRITE != 0 {
        let hint = "`chmod o-w` it: whoever writes there decides what runs on the GPU";
        findings.problem(DIRECTORY, format!("{shown} may be written to by every user"), hint);
    } else if ![0, user].contains(&metadata.uid()) {
        let hint = "make sure that this user is to decide what runs on the GPU";
        findings.warning(DIRECTORY, format!("{shown} belongs to user {}", metadata.uid()), hint);
    } else {
        findings.ok(DIRECTORY, shown);
    }
    true
}

/// The files in a directory with this extension, sorted.
pub(super) fn files_with_extension(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let files = entries(directory);
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|own| own == extension)).collect();
    files.sort();
    files
}

/// Checks all kdbs in the directories in which they are looked for. `versions` of MIOpen are
/// installed. With `deep`, every kernel of the devices' kdbs is decoded and hashed.
pub(super) fn check(
    directories: &KdbDirectories,
    targets: &[Target],
    versions: &[MiopenVersion],
    deep: bool,
    findings: &Findings<'_>,
) {
    if directories.system_disabled {
        return;
    }
    let mut kdbs: Vec<PathBuf> = Vec::new();
    for directory in directories.system_dirs() {
        kdbs.extend(files_with_extension(directory, "kdb"));
    }
    let mut foreign = Vec::new();
    for file in &kdbs {
        match targets.iter().find(|target| is_for(file, target)) {
            Some(target) => {
                let directory = file.parent().unwrap_or(Path::new("/"));
                let opens = |target| MiopenKdb::in_dir(directory, target).file == *file;
                check_kdb(file, target, targets.iter().any(opens), deep, findings);
                check_version(file, target, versions, findings);
            }
            None if target_of_kdb(file).is_some() => foreign.push(file.as_path()),
            None => findings.warning(
                ABOUT,
                format!("`{}` is named after no GPU: nothing looks for it", file.display()),
                "a kdb is called gfx906_60.kdb or gfx90a.kdb",
            ),
        }
    }
    report_others(&foreign, findings);
    for directory in directories.system_dirs() {
        targets.iter().for_each(|target| report_hidden(directory, target, findings));
    }
    // Packages of the system install nothing there.
    let is_python = |part: &OsStr| part == "site-packages" || part == "dist-packages";
    let is_pips = directories.system_dirs().any(|dir| dir.iter().any(is_python));
    targets.iter().for_each(|target| report_missing(target, &kdbs, is_pips, findings));
}

/// Checks the kdb of a device: rights, contents, and with `deep` every kernel. One that MIOpen does
/// not open is reported only if something is wrong with it.
fn check_kdb(kdb: &Path, target: &Target, opened: bool, deep: bool, findings: &Findings<'_>) {
    let shown = format!("`{}`", kdb.display());
    let before = findings.problems.get();
    if let Ok(metadata) = fs::metadata(kdb) {
        if metadata.mode() & OTHERS_WRITE != 0 {
            let hint = "`chmod o-w` it: whoever writes to it decides what runs on the GPU";
            findings.problem(ABOUT, format!("{shown} may be written to by every user"), hint);
        }
        if metadata.mode() & 0o004 == 0 {
            let hint = "`chmod a+r` it, if others are to use it";
            findings.warning(ABOUT, format!("{shown} may not be read by every user"), hint);
        }
    }
    for suffix in ["-wal", "-journal"] {
        let mut beside = kdb.as_os_str().to_owned();
        beside.push(suffix);
        if fs::symlink_metadata(&beside).is_ok() {
            let beside = beside.display();
            findings.warning(
                ABOUT,
                format!(
                    "`{beside}` exists: a program writes to this kdb, or was killed while it did"
                ),
                "install the package again; an installed kdb is only read",
            );
        }
    }
    match contents(kdb, target) {
        Err(error) => findings.problem(ABOUT, with_pointer(kdb, &error), error.hint()),
        Ok((.., Some(wrong))) => findings.problem(
            ABOUT,
            format!("{shown} {wrong}"),
            "install the package of this GPU again; `gfxpack kdb verify` lists all that is wrong",
        ),
        Ok((rows, bytes, None)) if findings.problems.get() == before => {
            if (!deep || verify(kdb, target, &shown, findings)) && opened {
                let (kernels, bytes) = (counted(rows, "kernel"), size(bytes));
                let decoded = if deep { ", all of them decoded" } else { "" };
                findings.ok(ABOUT, format!("{shown}: {kernels}, {bytes}{decoded}"));
            }
        }
        Ok(_) => {}
    }
}

/// The number of kernels in a kdb, its size, and what is wrong with it, judged by all its keys and
/// its first code object.
fn contents(kdb: &Path, target: &Target) -> Result<(u64, u64, Option<String>), ReadError> {
    let reader = Reader::open(kdb)?;
    let info = reader.info()?;
    let target = target.id();
    let others = info.devices.iter();
    let others = others.filter(|(device, _)| !device.is_empty() && *device != target.processor());
    let others = joined(others.map(|(device, count)| format!("{count} for {device}")));
    let mut first = None;
    let stop = reader.for_each_key(|key| {
        first = Some(key);
        Err::<(), Option<ReadError>>(None)
    });
    if let Err(Some(error)) = stop {
        return Err(error);
    }
    let code = first.map(|key| reader.get(&key)).transpose()?.flatten();
    let wrong = if info.rows == 0 {
        Some("holds no kernel".to_owned())
    } else if !others.is_empty() {
        Some(format!("holds kernels of other GPUs: {others}"))
    } else {
        code.and_then(|code| match code_object::targets(&code) {
            Ok(targets) if targets.iter().any(|code| code.serves(target)) => None,
            Ok(targets) => Some(format!("holds code for {}, not for {target}", joined(targets))),
            Err(error) => Some(format!("holds what is no code object: {error}")),
        })
    };
    Ok((info.rows, info.file_bytes, wrong))
}

/// The error in full, and the most likely cause if the file is too small.
fn with_pointer(kdb: &Path, error: &ReadError) -> String {
    /// How a pointer of Git LFS begins.
    ///
    /// Source: Git LFS, docs/spec.md, "The Pointer".
    const POINTER: &[u8] = b"version https://git-lfs";
    let text = in_full(error);
    let pointer = error.kind() == KdbErrorKind::TooSmall
        && fs::read(kdb).is_ok_and(|bytes| bytes.starts_with(POINTER));
    if pointer { format!("{text}: it is a Git LFS pointer") } else { text }
}

/// Decodes and hashes every row; whether all pass.
fn verify(kdb: &Path, target: &Target, shown: &str, findings: &Findings<'_>) -> bool {
    // A kdb without compute units in its name serves all counts.
    let named = target_of_kdb(kdb).unwrap_or_else(|| target.clone());
    let report = match gfxpack_kdb::verify(kdb, Some(&named), &VerifyOptions::default()) {
        Ok(report) => report,
        Err(error) => {
            findings.problem(ABOUT, in_full(&error), error.hint());
            return false;
        }
    };
    if let Some(first) = report.findings.first() {
        let all = counted(report.total_findings(), "finding");
        findings.problem(
            ABOUT,
            format!("{shown} has {all}, the first: {first}"),
            "install the package again; `gfxpack kdb verify` lists all that is wrong",
        );
    }
    report.is_sound()
}

/// Reports a kdb for a version of MIOpen that is not installed: an upgrade takes its kernels away.
fn check_version(
    file: &Path,
    target: &Target,
    versions: &[MiopenVersion],
    findings: &Findings<'_>,
) {
    // Another check has reported a kdb that can't be read.
    let Ok(reader) = Reader::open(file) else { return };
    let version = reader.header().miopen_version;
    if !version.is_known() || versions.is_empty() || versions.contains(&version) {
        return;
    }
    // A wheel has modules beside the directory of its kdb.
    let is_wheels = file.parent().is_some_and(|dir| dir.with_file_name("_start.py").exists());
    let (library, install) = if is_wheels {
        ("--miopen torch ", "pip install dist/*.whl")
    } else {
        ("", "gfxpack install --from dist")
    };
    findings.problem(
        ABOUT,
        format!(
            "`{}` has the kernels of MIOpen {version}, and {} is installed, which asks for others",
            file.display(),
            joined(versions)
        ),
        format!(
            "make new ones: gfxpack dist --problems FILE {library}--target {target} --out dist && \
             {install}"
        ),
    );
}

/// The names under which a device's kdbs are looked for.
fn names(target: &Target) -> Vec<String> {
    target.with_device_wide().iter().map(Target::kdb_file_name).collect()
}

/// Whether a kdb has one of a device's names.
fn is_for(kdb: &Path, target: &Target) -> bool {
    names(target).iter().any(|name| kdb.file_name().is_some_and(|file| **name == *file))
}

/// Reports the kernels that MIOpen does not find because it opens only the kdb for exactly the
/// device's compute units.
fn report_hidden(directory: &Path, target: &Target, findings: &Findings<'_>) {
    let MiopenKdb { file: exact, hidden: Some(wide), .. } = MiopenKdb::in_dir(directory, target)
    else {
        return;
    };
    // Another check has reported a kdb that can't be read.
    let Ok((hidden, of)) = hidden_kdbs::hidden(&exact, &wide) else { return };
    let (wide, exact, kernels) = (wide.display(), exact.display(), counted(of, "kernel"));
    let what = format!("`{wide}` is not opened by MIOpen for {target}, since `{exact}` exists");
    match hidden {
        0 => findings.note(ABOUT, format!("{what}, which has all of its {kernels}")),
        _ => findings.warning(
            ABOUT,
            format!("{what}: it hides {hidden} of {kernels}"),
            "remove the smaller package, or install one that has these kernels too, as `gfxpack dist` \
             makes it where it builds both",
        ),
    }
}

/// Reports kdbs of GPUs that this machine does not have.
fn report_others(kdbs: &[&Path], findings: &Findings<'_>) {
    let mut bytes = 0;
    for kdb in kdbs {
        bytes += fs::metadata(kdb).map_or(0, |metadata| metadata.len());
        if let Err(error) = Reader::open(kdb) {
            findings.warning(ABOUT, with_pointer(kdb, &error), error.hint());
        }
    }
    if !kdbs.is_empty() {
        let names = kdbs.iter().filter_map(|kdb| kdb.file_name());
        let names = joined(names.map(|name| name.to_string_lossy()));
        findings.note(ABOUT, format!("{} of other GPUs: {names}", size(bytes)));
    }
}

/// Reports a device without any kdb.
fn report_missing(target: &Target, kdbs: &[PathBuf], is_pips: bool, findings: &Findings<'_>) {
    if kdbs.iter().any(|kdb| is_for(kdb, target)) {
        return;
    }
    let targets = target.with_device_wide();
    let package = |target| package_name::for_target(package_name::DEFAULT_NAME_TEMPLATE, target);
    let packages: Vec<String> = targets.iter().map(package).collect();
    let alike = |kdb: &Target| kdb.id().processor() == target.id().processor();
    let near = kdbs.iter().filter(|kdb| target_of_kdb(kdb).as_ref().is_some_and(alike));
    let near: Vec<String> = near.map(|kdb| format!("`{}`", kdb.display())).collect();
    let near =
        if_any(near.len(), |_| format!("; {} is for other devices of its kind", joined(&near)));
    let hint = if is_pips {
        "build a wheel with `gfxpack dist --miopen torch`, and install it with pip".to_owned()
    } else {
        format!("install the package {}, or build it", packages.join(" or "))
    };
    findings.problem(
        ABOUT,
        format!("none is installed for {target} ({}){near}", names(target).join(" or ")),
        hint,
    );
}
