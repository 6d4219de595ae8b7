//! Checks `repodata`: its signature and everything that it lists.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_model::Result;

use super::listed::{Wanted, check_file, read, unlisted, within};
use crate::finding::Finding;
use crate::read::{INDEX_MAX, unpacked_text};
use crate::repomd::{self, Entry};
use crate::signing::Keyring;

/// Checks the index for dnf and zypper.
pub(super) fn check(
    dir: &Path,
    repomd: &Path,
    keyring: Option<&Keyring>,
    wanted: Wanted<'_>,
    listed: &mut BTreeSet<PathBuf>,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let text = match read(repomd) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(vec!["it is missing, though there is a `repodata`".to_owned().into()]);
        }
        Err(error) => return Ok(vec![error.to_string().into()]),
    };
    if let Some(keyring) = keyring {
        match read(&dir.join("repodata/repomd.xml.asc")) {
            Ok(signature) => {
                let refused = keyring.check_file(&signature, repomd)?;
                findings.extend(refused.map(|why| why.in_part("its signature")));
            }
            Err(_) => {
                let why = "it is not signed: there is no `repomd.xml.asc`";
                findings.push(Finding::unsigned(why));
            }
        }
    }
    let entries = match repomd::entries(&text, "data") {
        Ok(entries) => entries,
        Err(error) => {
            findings.push(format!("it is no XML: {error}").into());
            return Ok(findings);
        }
    };
    for Entry { kind, location: name, checksum } in entries {
        let Some(path) = within(dir, &name) else {
            findings.push(format!("`{name}` leads out of the repository").into());
            continue;
        };
        if let Some(finding) = check_file(&path, &name, None, &checksum, "the index") {
            findings.push(finding.into());
        } else if kind == "primary" {
            findings.extend(primary(dir, &path, wanted, listed).into_iter().map(Finding::from));
        }
    }
    findings.extend(unlisted(dir, "rpm", wanted, listed)?);
    Ok(findings)
}

/// Checks a list of packages, and the packages in it.
fn primary(
    dir: &Path,
    path: &Path,
    wanted: Wanted<'_>,
    listed: &mut BTreeSet<PathBuf>,
) -> Vec<String> {
    let text = read(path).and_then(|packed| unpacked_text(path, &packed, INDEX_MAX));
    let text = match text {
        Ok(text) => text,
        Err(error) => return vec![format!("`{}`: {error}", path.display())],
    };
    let packages = match repomd::entries(&text, "package") {
        Ok(packages) => packages,
        Err(error) => return vec![format!("`{}` is no XML: {error}", path.display())],
    };
    let mut findings = Vec::new();
    for Entry { location: name, checksum, .. } in packages {
        let Some(path) = within(dir, &name) else {
            findings.push(format!("`{name}` leads out of the repository"));
            continue;
        };
        if wanted(&path) {
            findings.extend(check_file(&path, &name, None, &checksum, "the index"));
        }
        listed.insert(path);
    }
    findings
}
