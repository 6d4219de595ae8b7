//! The installed kdbs: whether each GPU has one that can be used.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{MiopenVersion, Reader};
use gfxpack_model::package_name;
use gfxpack_runtime::explain::target_of_kdb;
use gfxpack_runtime::{MiopenKdb, Target};

use super::finding::Findings;
use super::installed::{InstalledFiles, files_with_extension};
use super::kdb::{ABOUT, KdbCheck, check_kdb, with_pointer};
use crate::hidden_kdbs::{HiddenKernels, hidden as compare};
use crate::text::{counted, if_any, joined, size};

/// Checks all kdbs in the directories in which they are looked for.
pub(super) fn check(installed: InstalledFiles<'_>, findings: &mut Findings<'_>) {
    let InstalledFiles { directories, targets, .. } = installed;
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
                let opened = targets.iter().any(opens);
                let deep = installed.deep;
                check_kdb(KdbCheck { file, target, opened, deep }, findings);
                check_version(file, target, installed.versions, findings);
            }
            None if target_of_kdb(file).is_some() => foreign.push(file.as_path()),
            None => findings.warning(
                ABOUT,
                format!("`{}` is named after no GPU: nothing looks for it", file.display()),
                "a kdb is called gfx906_60.kdb or gfx90a.kdb",
            ),
        }
    }
    others(&foreign, findings);
    for directory in directories.system_dirs() {
        for target in targets {
            hidden(directory, target, findings);
        }
    }
    for target in targets {
        missing(target, &kdbs, findings);
    }
}

/// Reports a kdb for a version of MIOpen that is not installed: an upgrade takes its kernels away.
fn check_version(
    file: &Path,
    target: &Target,
    versions: &[MiopenVersion],
    findings: &mut Findings<'_>,
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

/// Reports the kernels that MIOpen does not find because it opens only the kdb
/// for exactly the device's compute units.
fn hidden(directory: &Path, target: &Target, findings: &mut Findings<'_>) {
    let MiopenKdb { file: exact, hidden: Some(wide), .. } = MiopenKdb::in_dir(directory, target)
    else {
        return;
    };
    // Another check has reported a kdb that can't be read.
    let Ok(found) = compare(&exact, &wide) else { return };
    let HiddenKernels { hidden, of } = found;
    let what = format!(
        "`{}` is not opened by MIOpen for {target}, since `{}` exists",
        wide.display(),
        exact.display()
    );
    match hidden {
        0 => findings.note(ABOUT, format!("{what}, which has all of its {}", counted(of, "kernel"))),
        _ => findings.warning(
            ABOUT,
            format!("{what}: it hides {hidden} of {}", counted(of, "kernel")),
            "remove the smaller package, or install one that has these kernels too, as `gfxpack dist` \
             makes it where it builds both",
        ),
    }
}

/// Reports kdbs of GPUs that this machine does not have.
fn others(kdbs: &[&Path], findings: &mut Findings<'_>) {
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
        let what = format!("{} of other GPUs: {names}", size(bytes));
        findings.note(ABOUT, what);
    }
}

/// Reports a device without any kdb.
fn missing(target: &Target, kdbs: &[PathBuf], findings: &mut Findings<'_>) {
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
    findings.problem(
        ABOUT,
        format!("none is installed for {target} ({}){near}", names(target).join(" or ")),
        format!("install the package {}, or build it", packages.join(" or ")),
    );
}
