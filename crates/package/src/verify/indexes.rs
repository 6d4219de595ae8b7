//! Checks the indexes of a repository: their signatures, the files that they
//! list, and that no package is missing from them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_model::Result;

use super::listed::{Wanted, suites, unlisted};
use super::{apt, rpm};
use crate::finding::Finding;
use crate::signing::Keyring;

/// Each index with its findings, and the packages that the indexes list.
type Checked = (Vec<(PathBuf, Vec<Finding>)>, BTreeSet<PathBuf>);

/// Whether the directory has indexes.
pub(super) fn are_in(dir: &Path) -> bool {
    dir.join("dists").is_dir() || dir.join("repodata").is_dir()
}

/// Checks every index in `dir`, as far as it is about `wanted` packages.
pub(super) fn check(dir: &Path, keyring: Option<&Keyring>, wanted: Wanted<'_>) -> Result<Checked> {
    let (mut indexes, mut listed) = Checked::default();
    let dists = dir.join("dists");
    if dists.is_dir() {
        for suite in suites(dir)? {
            indexes.push(apt::check(dir, &suite, keyring, wanted, &mut listed)?);
        }
        match indexes.first_mut() {
            // All suites share the packages.
            Some((_, findings)) => findings.extend(unlisted(dir, "deb", wanted, &listed)?),
            None => indexes.push((dists, vec!["there is no suite in it".to_owned().into()])),
        }
    }
    if dir.join("repodata").is_dir() {
        let repomd = dir.join("repodata/repomd.xml");
        let findings = rpm::check(dir, &repomd, keyring, wanted, &mut listed)?;
        indexes.push((repomd, findings));
    }
    for (_, findings) in &mut indexes {
        findings.dedup();
    }
    Ok((indexes, listed))
}
