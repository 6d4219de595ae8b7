//! Checks the indexes of a repository: signatures, what they list, and that
//! they list it all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_process::FileError;

use super::error::VerifyError;
use super::listed::unlisted;
use super::{apt, rpm};
use crate::finding::Finding;
use crate::signing::Keyring;

/// What was found out about the indexes of a directory.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// Each index with what is wrong with it.
    pub(super) indexes: Vec<(PathBuf, Vec<Finding>)>,
    /// The packages that they list.
    pub(super) listed: BTreeSet<PathBuf>,
}

/// Every index below `dir`.
pub(super) fn check(dir: &Path, keyring: Option<&Keyring>) -> Result<Indexes, VerifyError> {
    let mut checked = Indexes::default();
    let suites = dir.join("dists");
    if suites.is_dir() {
        let mut tops = Vec::new();
        for entry in std::fs::read_dir(&suites).map_err(FileError::io("read", &suites))? {
            tops.push(entry.map_err(FileError::io("read", &suites))?.path());
        }
        tops.retain(|top| top.is_dir());
        tops.sort();
        for top in &tops {
            let checked_one = apt::check(dir, top, keyring, &mut checked.listed)?;
            checked.indexes.push(checked_one);
        }
        match checked.indexes.first_mut() {
            // Suites share what lies below.
            Some((_, findings)) => findings.extend(unlisted(dir, "deb", &checked.listed)?),
            None => {
                checked.indexes.push((suites, vec!["there is no suite in it".to_owned().into()]))
            }
        }
    }
    if dir.join("repodata").is_dir() {
        let repomd = dir.join("repodata/repomd.xml");
        let findings = rpm::check(dir, &repomd, keyring, &mut checked.listed)?;
        checked.indexes.push((repomd, findings));
    }
    for (_, findings) in &mut checked.indexes {
        findings.dedup();
    }
    Ok(checked)
}
