//! Checks a list of digests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_model::Result;

use super::listed::{Wanted, check_signature, read, unreadable, within};
use crate::finding::Finding;
use crate::signing::Keyring;
use crate::sums::digest_file;

/// Checks the list at `path` and the `wanted` files of `dir` in it. All are added to
/// `listed`.
pub(super) fn check(
    dir: &Path,
    path: &Path,
    keyring: Option<&Keyring>,
    wanted: Wanted<'_>,
    listed: &mut BTreeSet<PathBuf>,
) -> Result<Vec<Finding>> {
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(vec![error.to_string().into()]),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut findings: Vec<Finding> = Vec::new();
    if let Some(keyring) = keyring {
        findings.extend(check_signature(keyring, path)?);
    }
    for line in text.lines() {
        let Some((sum, name)) = line.split_once("  ") else {
            findings.push(format!("`{line}` is no line of checksums").into());
            continue;
        };
        let Some(path) = within(dir, name) else {
            findings.push(format!("`{name}` leads out of the directory").into());
            continue;
        };
        match wanted(&path).then(|| digest_file(&path)).transpose() {
            Ok(file) if file.as_ref().is_none_or(|file| file.sha256 == sum) => {}
            Ok(_) => findings.push(format!("`{name}` is not what it says").into()),
            Err(error) => findings.push(unreadable(name, &error).into()),
        }
        listed.insert(path);
    }
    Ok(findings)
}
