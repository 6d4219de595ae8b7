//! One kdb of a device: rights, contents, and with `deep` every kernel.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gfxpack_kdb::{KdbErrorKind, ReadError, Reader, VerifyOptions};
use gfxpack_model::code_object;
use gfxpack_runtime::Target;
use gfxpack_runtime::explain::target_of_kdb;

use super::directories::OTHERS_WRITE;
use super::finding::Findings;
use crate::error::in_full;
use crate::text::{counted, joined, size};

pub(super) const ABOUT: &str = "kdb";

/// A kdb to check, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct KdbCheck<'a> {
    pub(super) file: &'a Path,
    /// The device that looks for the kdb.
    pub(super) target: &'a Target,
    /// Whether MIOpen opens the kdb. Others are reported only if something is
    /// wrong with them.
    pub(super) opened: bool,
    /// Whether every kernel is decoded and hashed.
    pub(super) deep: bool,
}

/// Checks a kdb of one of the devices.
pub(super) fn check_kdb(kdb: KdbCheck<'_>, findings: &mut Findings<'_>) {
    let shown = format!("`{}`", kdb.file.display());
    let before = findings.problems();
    rights(kdb.file, &shown, findings);
    for suffix in ["-wal", "-journal"] {
        let mut beside = kdb.file.as_os_str().to_owned();
        beside.push(suffix);
        if fs::symlink_metadata(&beside).is_ok() {
            findings.warning(
                ABOUT,
                format!(
                    "`{}` exists: a program writes to this kdb, or was killed while it did",
                    beside.display()
                ),
                "install the package again; an installed kdb is only read",
            );
        }
    }
    match contents(kdb) {
        Err(error) => findings.problem(ABOUT, with_pointer(kdb.file, &error), error.hint()),
        Ok(Contents { wrong: Some(wrong), .. }) => findings.problem(
            ABOUT,
            format!("{shown} {wrong}"),
            "install the package of this GPU again; `gfxpack kdb verify` lists all that is wrong",
        ),
        Ok(Contents { rows, bytes, .. }) if findings.problems() == before => {
            if (!kdb.deep || verify(kdb, &shown, findings)) && kdb.opened {
                let kernels = counted(rows, "kernel");
                let decoded = if kdb.deep { ", all of them decoded" } else { "" };
                findings.ok(ABOUT, format!("{shown}: {kernels}, {}{decoded}", size(bytes)));
            }
        }
        Ok(_) => {}
    }
}

fn rights(kdb: &Path, shown: &str, findings: &mut Findings<'_>) {
    let Ok(metadata) = fs::metadata(kdb) else { return };
    if metadata.mode() & OTHERS_WRITE != 0 {
        let hint = "`chmod o-w` it: whoever writes to it decides what runs on the GPU";
        findings.problem(ABOUT, format!("{shown} may be written to by every user"), hint);
    }
    if metadata.mode() & 0o004 == 0 {
        let hint = "`chmod a+r` it, if others are to use it";
        findings.warning(ABOUT, format!("{shown} may not be read by every user"), hint);
    }
}

struct Contents {
    rows: u64,
    bytes: u64,
    wrong: Option<String>,
}

/// The contents of a kdb, judged by all its keys and its first code object.
fn contents(kdb: KdbCheck<'_>) -> Result<Contents, ReadError> {
    let reader = Reader::open(kdb.file)?;
    let info = reader.info()?;
    let target = kdb.target.id();
    let processor = target.processor();
    let others = info.devices.iter();
    let others = others.filter(|(device, _)| !device.is_empty() && *device != processor);
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
    Ok(Contents { rows: info.rows, bytes: info.file_bytes, wrong })
}

/// The error in full, and the most likely cause if the file is too small.
pub(super) fn with_pointer(kdb: &Path, error: &ReadError) -> String {
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
fn verify(kdb: KdbCheck<'_>, shown: &str, findings: &mut Findings<'_>) -> bool {
    // A kdb without compute units in its name serves all counts.
    let named = target_of_kdb(kdb.file).unwrap_or_else(|| kdb.target.clone());
    let report = match gfxpack_kdb::verify(kdb.file, Some(&named), &VerifyOptions::default()) {
        Ok(report) => report,
        Err(error) => {
            findings.problem(ABOUT, in_full(&error), error.hint());
            return false;
        }
    };
    if let Some(first) = report.findings.first() {
        findings.problem(
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
