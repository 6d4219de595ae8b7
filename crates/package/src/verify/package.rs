//! Checks a single package: its structure, the databases in it, its signature.

use gfxpack_model::{Error, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use gfxpack_process::{scratch_error, temporary_dir};

use super::listed::{check_signature, signature_of};
use super::{Inspector, Subject, Verified};
use crate::finding::Finding;
use crate::read::{self, PackageKind, Report};
use crate::signing::Keyring;

/// Kernels are similar to each other, so a package may unpack to perhaps a
/// hundred times its size. A database that is larger than this many times its
/// package is meant to fill a disk.
const EXPANSION_MAX: u64 = 2000;

/// A database may always have this size, in bytes.
const UNPACKED_MIN: u64 = 64 << 20;

/// Maximum length of file names on Linux, in bytes.
const NAME_MAX: usize = 255;

/// Checks a package. `listed` says whether an index or a list names it.
pub(super) fn check(
    path: &Path,
    listed: bool,
    keyring: Option<&Keyring>,
    inspector: &mut dyn Inspector,
) -> Result<Verified> {
    let kind = PackageKind::from_name(path).ok_or_else(|| {
        Error::usage(
            format!("failed to verify `{}`: its name is no package's", path.display()),
            "give a .deb, .rpm, .tar.gz, .tar.xz, .tar.zst, .whl, .oci.tar or .pkg.tar.zst, or a \
             directory; kdbs are verified by `gfxpack kdb verify`, performance and find databases \
             by `gfxpack perfdb lint`",
        )
    })?;
    let scratch = temporary_dir()?;
    let size = path.metadata().map_err(Error::io("find", path))?.len();
    let most = size.saturating_mul(EXPANSION_MAX).max(UNPACKED_MIN);
    let mut in_databases = Vec::new();
    let mut entries = 0;
    let report = read::check(path, kind, &mut |inside, bytes| {
        if !inspector.is_wanted(inside) {
            return Ok(());
        }
        let name = inside.rsplit('/').next().unwrap_or_default();
        if name.len() > NAME_MAX {
            in_databases.push(format!("`{inside}`: its name is too long"));
            return Ok(());
        }
        let copy = scratch.path().join(name);
        if unpack(bytes, &copy, most).map_err(scratch_error(&copy))? {
            let inspected = inspector.inspect(&copy);
            entries += inspected.entries;
            // Findings name the file in the package, not the copy.
            let shown = copy.display().to_string();
            let named = |text: &String| format!("`{inside}`: {}", text.replace(&shown, inside));
            in_databases.extend(inspected.findings.iter().map(named));
        } else {
            let why = format!("it has more than {most} bytes, in a package of {size}");
            in_databases.push(format!("`{inside}`: {why}"));
        }
        std::fs::remove_file(&copy).map_err(scratch_error(&copy))?;
        Ok(())
    })?;
    let subject = Subject::Package { files: report.files, entries };
    let signatures = keyring.map(|keyring| signatures(path, kind, listed, keyring, &report));
    // A damaged package may be incomplete.
    if report.findings.is_empty() {
        in_databases.extend(inspector.flaws(kind, &report));
    }
    let mut findings: Vec<Finding> =
        report.findings.into_iter().chain(in_databases).map(Finding::from).collect();
    for link in report.links.iter().filter(|link| inspector.is_wanted(link)) {
        let what = format!("`{link}` is a link, and its kernels are not looked at");
        findings.push(what.into());
    }
    findings.extend(signatures.transpose()?.unwrap_or_default());
    Ok(Verified { path: path.to_owned(), subject, findings })
}

/// Checks the signatures in a package, or the one beside it.
fn signatures(
    path: &Path,
    kind: PackageKind,
    listed: bool,
    keyring: &Keyring,
    report: &Report,
) -> Result<Vec<Finding>> {
    match &report.signed {
        Some(signed) if signed.signatures.is_empty() => {
            Ok(vec![Finding::unsigned("it is not signed")])
        }
        Some(signed) => {
            let mut refused = Vec::new();
            for signature in &signed.signatures {
                refused.extend(keyring.check_bytes(signature, &signed.header)?);
            }
            // One good signature is enough, since all cover the same bytes.
            if refused.len() < signed.signatures.len() {
                refused.clear();
            }
            Ok(refused.into_iter().map(|why| why.in_part("its signature")).collect())
        }
        // A .deb without a signature may be listed in a signed index.
        None if kind == PackageKind::Deb && listed && !signature_of(path).exists() => {
            Ok(Vec::new())
        }
        None => Ok(check_signature(keyring, path)?.into_iter().collect()),
    }
}

/// Writes a file of a package to `copy`; `false` if it has more than `most`
/// bytes. Read errors are ignored: they are damage, which the package's reader
/// reports.
fn unpack(bytes: &mut dyn Read, copy: &Path, most: u64) -> io::Result<bool> {
    let copied = io::copy(&mut bytes.take(most), &mut File::create(copy)?)?;
    Ok(copied < most || bytes.read(&mut [0])? == 0)
}
