//! The installed kdbs: whether there is one for each GPU, and whether it can
//! be used.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{Fault, ReadError};
use gfxpack_model::{code_object, package_name};
use gfxpack_pipeline::hidden::{Hidden, hidden as compare};
use gfxpack_runtime::explain::{entries as list, target_of};
use gfxpack_runtime::{MiopenKdb, Places, Target};

use super::Checks;
use super::places::OTHERS_WRITE;
use crate::args::MaxObject;
use crate::commands::kdb::{open, verify_options};
use crate::fail::in_full;
use crate::output::{counted, size};

const ABOUT: &str = "kdb";

/// Checks all kdbs in the directories that are asked.
pub(super) fn check(places: &Places, targets: &[Target], deep: bool, checks: &mut Checks<'_>) {
    if places.system_disabled {
        return;
    }
    let mut kdbs: Vec<PathBuf> = Vec::new();
    for directory in places.system_dirs() {
        let mut here: Vec<PathBuf> = list(directory).filter(|path| is_kdb(path)).collect();
        here.sort();
        kdbs.append(&mut here);
    }
    let mut foreign = Vec::new();
    for kdb in &kdbs {
        let named = target_of(kdb);
        let asked = targets.iter().find(|target| {
            names(target).iter().any(|name| kdb.file_name().is_some_and(|file| **name == *file))
        });
        match (named, asked) {
            (_, Some(target)) => {
                let directory = kdb.parent().unwrap_or(Path::new("/"));
                let opens = |target| MiopenKdb::in_dir(directory, target).file == *kdb;
                own(kdb, target, targets.iter().any(opens), deep, checks);
            }
            (Some(_), None) => foreign.push(kdb.as_path()),
            (None, None) => checks.warning(
                ABOUT,
                format!("`{}` is named after no GPU: nothing looks for it", kdb.display()),
                "a kdb is called gfx906_60.kdb or gfx90a.kdb",
            ),
        }
    }
    others(&foreign, checks);
    for directory in places.system_dirs() {
        for target in targets {
            hidden(directory, target, checks);
        }
    }
    for target in targets {
        missing(target, &kdbs, checks);
    }
}

/// The names under which a device's kdbs are looked for.
fn names(target: &Target) -> Vec<String> {
    let wide = Target::new(target.id().clone(), None);
    let mut names = vec![target.kdb_file_name(), wide.kdb_file_name()];
    names.dedup();
    names
}

fn is_kdb(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "kdb")
}

/// A kdb of this machine's; that one is in order is told if MIOpen opens it.
fn own(kdb: &Path, target: &Target, opened: bool, deep: bool, checks: &mut Checks<'_>) {
    let shown = format!("`{}`", kdb.display());
    let before = checks.problems;
    rights(kdb, &shown, checks);
    for suffix in ["-wal", "-journal"] {
        let mut beside = kdb.as_os_str().to_owned();
        beside.push(suffix);
        if fs::symlink_metadata(&beside).is_ok() {
            checks.warning(
                ABOUT,
                format!("`{}` lies beside it: somebody writes to the kdb", beside.display()),
                "install the package again; an installed kdb is only read",
            );
        }
    }
    match contents(kdb, target, checks.max_object) {
        Err(error) => checks.problem(ABOUT, with_pointer(kdb, &error), error.hint()),
        Ok(Contents { wrong: Some(wrong), .. }) => checks.problem(
            ABOUT,
            format!("{shown} {wrong}"),
            "install the package of this GPU again; `gfxpack kdb verify` lists all that is wrong",
        ),
        Ok(Contents { rows, bytes, .. }) if checks.problems == before => {
            if (!deep || verify(kdb, target, &shown, checks)) && opened {
                checks.ok(ABOUT, format!("{shown}: {}, {}", counted(rows, "kernel"), size(bytes)));
            }
        }
        Ok(_) => {}
    }
}

fn rights(kdb: &Path, shown: &str, checks: &mut Checks<'_>) {
    let Ok(metadata) = fs::metadata(kdb) else { return };
    if metadata.mode() & OTHERS_WRITE != 0 {
        let hint = "`chmod o-w` it: whoever writes to it decides what runs on the GPU";
        checks.problem(ABOUT, format!("{shown} may be written to by every user"), hint);
    }
    if metadata.mode() & 0o004 == 0 {
        let hint = "`chmod a+r` it, if others are to use it";
        checks.warning(ABOUT, format!("{shown} may not be read by every user"), hint);
    }
}

struct Contents {
    rows: u64,
    bytes: u64,
    wrong: Option<String>,
}

/// What a kdb holds, judged by all keys and by its first code object.
fn contents(kdb: &Path, target: &Target, max_object: MaxObject) -> Result<Contents, ReadError> {
    let reader = open(kdb, max_object)?;
    let info = reader.info()?;
    let processor = target.id().processor();
    let others: Vec<String> = info
        .devices
        .iter()
        .filter(|(device, _)| !device.is_empty() && *device != processor)
        .map(|(device, count)| format!("{count} for {device}"))
        .collect();
    let mut first = None;
    let stop = reader.for_each_row(|entry| {
        first = Some(entry.key);
        Err::<(), Option<ReadError>>(None)
    });
    if let Err(Some(error)) = stop {
        return Err(error);
    }
    let code = first.map(|key| reader.get(&key)).transpose()?.flatten();
    let wrong = if info.rows == 0 {
        Some("holds no kernel".to_owned())
    } else if !others.is_empty() {
        Some(format!("holds kernels of other GPUs: {}", others.join(", ")))
    } else {
        code.and_then(|code| match code_object::targets(&code) {
            Ok(targets) if targets.iter().any(|code| code.serves(target.id())) => None,
            Ok(targets) => {
                let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
                Some(format!("holds code for {}, not for {}", targets.join(", "), target.id()))
            }
            Err(error) => Some(format!("holds what is no code object: {error}")),
        })
    };
    Ok(Contents { rows: info.rows, bytes: info.file_bytes, wrong })
}

/// The error in full, and what a file that is too small most likely is.
fn with_pointer(kdb: &Path, error: &ReadError) -> String {
    /// How a pointer of Git LFS begins.
    ///
    /// Source: Git LFS, docs/spec.md, "The Pointer".
    const POINTER: &[u8] = b"version https://git-lfs";
    let text = in_full(error);
    let pointer = error.fault() == Fault::TooSmall
        && fs::read(kdb).is_ok_and(|bytes| bytes.starts_with(POINTER));
    if pointer { format!("{text}: it is a Git LFS pointer") } else { text }
}

/// Whether every row passes.
fn verify(kdb: &Path, target: &Target, shown: &str, checks: &mut Checks<'_>) -> bool {
    // Named device-wide, it serves all counts.
    let named = target_of(kdb).unwrap_or_else(|| target.clone());
    let report = match gfxpack_kdb::verify(kdb, Some(&named), &verify_options(checks.max_object)) {
        Ok(report) => report,
        Err(error) => {
            checks.problem(ABOUT, in_full(&error), error.hint());
            return false;
        }
    };
    if let Some(first) = report.findings.first() {
        checks.problem(
            ABOUT,
            format!(
                "{shown} has {}, the first: {first}",
                counted(report.total_findings(), "finding")
            ),
            "install the package again; `gfxpack kdb verify` lists all that is wrong",
        );
    }
    report.is_sound()
}

/// What MIOpen does not find since it opens the kdb for exactly the device's
/// compute units, and no other.
fn hidden(directory: &Path, target: &Target, checks: &mut Checks<'_>) {
    let MiopenKdb { file: exact, hidden: Some(wide), .. } = MiopenKdb::in_dir(directory, target)
    else {
        return;
    };
    // One that can't be read has been told of.
    let Ok(found) = compare(&exact, &wide, checks.max_object.bytes) else { return };
    let Hidden { hidden, of } = found;
    let what = format!(
        "`{}` is not opened by MIOpen for {target}, since `{}` exists",
        wide.display(),
        exact.display()
    );
    match hidden {
        0 => checks.note(ABOUT, format!("{what}, which has all of its {}", counted(of, "kernel"))),
        _ => checks.warning(
            ABOUT,
            format!("{what}: it hides {hidden} of {}", counted(of, "kernel")),
            "remove the smaller package, or install one that has these kernels too, as `gfxpack dist` \
             makes it where it builds both",
        ),
    }
}

/// kdbs of GPUs that this machine does not have.
fn others(kdbs: &[&Path], checks: &mut Checks<'_>) {
    let mut bytes = 0;
    for kdb in kdbs {
        bytes += fs::metadata(kdb).map_or(0, |metadata| metadata.len());
        if let Err(error) = open(kdb, checks.max_object) {
            checks.warning(ABOUT, with_pointer(kdb, &error), error.hint());
        }
    }
    if !kdbs.is_empty() {
        let names: Vec<String> = kdbs
            .iter()
            .filter_map(|kdb| Some(kdb.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let what = format!("{} of other GPUs: {}", size(bytes), names.join(", "));
        checks.note(ABOUT, what);
    }
}

/// Whether a device has no kdb at all.
fn missing(target: &Target, kdbs: &[PathBuf], checks: &mut Checks<'_>) {
    let names = names(target);
    let has =
        |name: &String| kdbs.iter().any(|kdb| kdb.file_name().is_some_and(|file| **name == *file));
    if names.iter().any(has) {
        return;
    }
    let packages: Vec<String> = [target.clone(), Target::new(target.id().clone(), None)]
        .iter()
        .map(|target| package_name::for_target(package_name::DEFAULT_NAME_TEMPLATE, target))
        .collect();
    let mut packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    packages.dedup();
    let near: Vec<String> = kdbs
        .iter()
        .filter(|kdb| target_of(kdb).is_some_and(|o| o.id().processor() == target.id().processor()))
        .map(|kdb| format!("`{}`", kdb.display()))
        .collect();
    let near = if near.is_empty() {
        String::new()
    } else {
        format!("; {} is for other devices of its kind", near.join(", "))
    };
    checks.problem(
        ABOUT,
        format!("none is installed for {target} ({}){near}", names.join(" or ")),
        &format!("install the package {}, or build it", packages.join(" or ")),
    );
}
