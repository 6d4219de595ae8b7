//! Checks a suite below `dists`: its signatures and everything that it lists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_model::{Digest, Result};

use super::listed::{Wanted, check_file, optional, read, within};
use crate::deb822::Paragraph;
use crate::finding::Finding;
use crate::signing::{Keyring, clear_signed};

/// Checks a suite. apt uses `InRelease`, or else `Release` with `Release.gpg`.
///
/// Source: Debian wiki, `DebianRepository/Format`.
pub(super) fn check(
    dir: &Path,
    top: &Path,
    keyring: Option<&Keyring>,
    wanted: Wanted<'_>,
    listed: &mut BTreeSet<PathBuf>,
) -> Result<(PathBuf, Vec<Finding>)> {
    let release = top.join("Release");
    let mut findings: Vec<Finding> = Vec::new();
    let mut found = |name: &str| {
        let bytes = optional(&top.join(name));
        bytes.unwrap_or_else(|error| {
            findings.push(format!("`{name}`: {error}").into());
            None
        })
    };
    let (plain, inline, detached) = (found("Release"), found("InRelease"), found("Release.gpg"));
    let within = match (&inline, keyring) {
        (Some(signed), Some(keyring)) => Some(keyring.check_clear_signed(signed)?),
        (Some(signed), None) => Some(clear_signed(signed).map(|it| it.text).map_err(Finding::from)),
        (None, _) => None,
    };
    let refuse = |why: Finding| findings.push(why.in_part("the signature of `InRelease`"));
    let within = within.and_then(|within| within.map_err(refuse).ok()).map(String::into_bytes);
    if within.is_some() && plain.is_some() && within != plain {
        findings.push("`InRelease` says something else".to_owned().into());
    }
    match (keyring, &plain, &detached) {
        (Some(keyring), Some(_), Some(signature)) => {
            let refused = keyring.check_file(signature, &release)?;
            findings.extend(refused.map(|why| why.in_part("its signature")));
        }
        // apt needs either of them.
        (Some(_), Some(_), None) if inline.is_none() => {
            let why = "it is not signed: there is neither `InRelease` nor `Release.gpg`";
            findings.push(Finding::unsigned(why));
        }
        _ => {}
    }
    let (index, bytes) = match (plain, inline) {
        (Some(plain), _) => (release, plain),
        (None, Some(_)) => (top.join("InRelease"), within.unwrap_or_default()),
        (None, None) => {
            findings.push("there is neither `Release` nor `InRelease` in it".to_owned().into());
            return Ok((top.to_owned(), findings));
        }
    };
    let wrong = listed_by(dir, top, &String::from_utf8_lossy(&bytes), wanted, listed);
    findings.extend(wrong.into_iter().map(Finding::from));
    Ok((index, findings))
}

/// Findings about the files that a `Release` lists.
fn listed_by(
    dir: &Path,
    top: &Path,
    release: &str,
    wanted: Wanted<'_>,
    listed: &mut BTreeSet<PathBuf>,
) -> Vec<String> {
    let mut findings = Vec::new();
    let by_hash = release.lines().any(|line| line.trim_end() == "Acquire-By-Hash: yes");
    let sums = release.lines().skip_while(|line| line.trim_end() != "SHA256:").skip(1);
    for line in sums.take_while(|line| line.starts_with(' ')) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [sum, size, name] = fields.as_slice() else {
            findings.push(format!("`{line}` lists no file"));
            continue;
        };
        let size = size.parse().ok();
        let Some(path) = within(top, name) else {
            findings.push(format!("`{name}` leads out of the suite"));
            continue;
        };
        // apt asks by digest, old versions of it by name.
        if by_hash {
            let below = format!("by-hash/SHA256/{sum}");
            let below = Path::new(name).with_file_name(below).display().to_string();
            findings.extend(within(top, &below).map_or_else(
                || Some(format!("`{below}` leads out of the suite")),
                |path| check_file(&path, &below, size, sum, "it"),
            ));
        }
        if !name.ends_with("/Packages") {
            findings.extend(check_file(&path, name, size, sum, "it"));
            continue;
        }
        match read(&path) {
            Ok(bytes) if Digest::of(&bytes).to_string() == *sum => {
                findings.extend(stanzas(dir, &String::from_utf8_lossy(&bytes), wanted, listed));
            }
            Ok(_) => findings.push(format!("`{name}` is not what it says")),
            Err(error) => findings.push(format!("`{name}`: {error}")),
        }
    }
    findings
}

/// Findings about the packages that a `Packages` lists.
fn stanzas(
    dir: &Path,
    packages: &str,
    wanted: Wanted<'_>,
    listed: &mut BTreeSet<PathBuf>,
) -> Vec<String> {
    let mut findings = Vec::new();
    for stanza in packages.split("\n\n").filter(|stanza| !stanza.trim().is_empty()) {
        let field = |name: &str| Paragraph(stanza).line(name).unwrap_or_default();
        let name = field("Filename");
        let Some(path) = within(dir, name) else {
            findings.push(format!("`{name}` leads out of the repository"));
            continue;
        };
        if listed.insert(path.clone()) && wanted(&path) {
            let size = field("Size").parse().ok();
            findings.extend(check_file(&path, name, size, field("SHA256"), "the index"));
        }
    }
    findings
}
