//! Checks the indexes of a repository: signatures, what they list, and that
//! they list it all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_package::{read, sums};
use gfxpack_plan::Digest;

use super::packages;
use crate::fail;
use crate::signing::Keyring;

/// Every index below `dir` with what is wrong with it.
pub(crate) fn check(
    dir: &Path,
    keyring: Option<&Keyring>,
) -> anyhow::Result<Vec<(PathBuf, Vec<String>)>> {
    let mut checked = Vec::new();
    let suites = dir.join("dists");
    if suites.is_dir() {
        let mut releases: Vec<PathBuf> = std::fs::read_dir(&suites)
            .map_err(fail::io("read", &suites))?
            .filter_map(|entry| Some(entry.ok()?.path().join("Release")))
            .filter(|release| release.is_file())
            .collect();
        releases.sort();
        for release in releases {
            let findings = apt(dir, &release, keyring)?;
            checked.push((release, findings));
        }
    }
    let repomd = dir.join("repodata/repomd.xml");
    if repomd.is_file() {
        let findings = rpm(dir, &repomd, keyring)?;
        checked.push((repomd, findings));
    }
    Ok(checked)
}

/// Source: Debian wiki, `DebianRepository/Format`.
fn apt(dir: &Path, release: &Path, keyring: Option<&Keyring>) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    let top = release.parent().unwrap_or(dir);
    let bytes = std::fs::read(release).map_err(fail::io("read", release))?;
    if let Some(keyring) = keyring {
        match std::fs::read(top.join("InRelease")) {
            Ok(signed) => match keyring.text(&signed)? {
                Ok(text) if text == bytes => {}
                Ok(_) => findings.push("`InRelease` says something else".to_owned()),
                Err(why) => findings.push(format!("the signature of `InRelease`: {why}")),
            },
            Err(_) => findings.push("it is not signed: there is no `InRelease`".to_owned()),
        }
        match std::fs::read(top.join("Release.gpg")) {
            Ok(signature) => {
                let refused = keyring.refuses(&signature, release)?;
                findings.extend(refused.map(|why| format!("its signature: {why}")));
            }
            Err(_) => findings.push("it is not signed: there is no `Release.gpg`".to_owned()),
        }
    }
    let mut listed = BTreeSet::new();
    let text = String::from_utf8_lossy(&bytes);
    let sums = text.lines().skip_while(|line| *line != "SHA256:").skip(1);
    for line in sums.take_while(|line| line.starts_with(' ')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [sum, _, name] = words.as_slice() else {
            findings.push(format!("`{line}` lists no file"));
            continue;
        };
        match std::fs::read(top.join(name)) {
            Ok(bytes) if Digest::of(&bytes).to_string() == *sum => {
                if name.ends_with("/Packages") {
                    findings.extend(stanzas(dir, &String::from_utf8_lossy(&bytes), &mut listed));
                }
            }
            Ok(_) => findings.push(format!("`{name}` is not what it says")),
            Err(error) => findings.push(format!("`{name}`: {error}")),
        }
    }
    findings.extend(unlisted(dir, "deb", &listed)?);
    findings.dedup();
    Ok(findings)
}

fn stanzas(dir: &Path, packages: &str, listed: &mut BTreeSet<PathBuf>) -> Vec<String> {
    let mut findings = Vec::new();
    for stanza in packages.split("\n\n").filter(|stanza| !stanza.trim().is_empty()) {
        let field = |name: &str| {
            let line = stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_default().trim().to_owned()
        };
        let path = dir.join(field("Filename"));
        if listed.insert(path.clone()) {
            findings.extend(one(&path, &field("Filename"), &field("SHA256")));
        }
    }
    findings
}

/// What is wrong with a file that an index lists.
fn one(path: &Path, name: &str, sha256: &str) -> Option<String> {
    match sums::digest_file(path) {
        Ok(file) if file.sha256 == sha256 => None,
        Ok(_) => Some(format!("`{name}` is not what the index says")),
        Err(error) => Some(format!("`{name}`: {}", fail::in_full(&error))),
    }
}

fn unlisted(dir: &Path, ending: &str, listed: &BTreeSet<PathBuf>) -> anyhow::Result<Vec<String>> {
    let found = packages(dir)?.into_iter().filter(|path| {
        path.extension().is_some_and(|extension| extension == ending) && !listed.contains(path)
    });
    Ok(found.map(|path| format!("`{}` is not in the index", path.display())).collect())
}

/// Source: createrepo_c, "Repository metadata"; `repomd.xml` and `primary.xml`.
fn rpm(dir: &Path, repomd: &Path, keyring: Option<&Keyring>) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    if let Some(keyring) = keyring {
        match std::fs::read(dir.join("repodata/repomd.xml.asc")) {
            Ok(signature) => {
                let refused = keyring.refuses(&signature, repomd)?;
                findings.extend(refused.map(|why| format!("its signature: {why}")));
            }
            Err(_) => findings.push("it is not signed: there is no `repomd.xml.asc`".to_owned()),
        }
    }
    let text = std::fs::read_to_string(repomd).map_err(fail::io("read", repomd))?;
    let index = match roxmltree::Document::parse(&text) {
        Ok(index) => index,
        Err(error) => {
            findings.push(format!("it is no XML: {error}"));
            return Ok(findings);
        }
    };
    let mut listed = BTreeSet::new();
    for data in children(index.root_element(), "data") {
        let (name, sum) = location_and_sum(data);
        let path = dir.join(&name);
        if let Some(finding) = one(&path, &name, &sum) {
            findings.push(finding);
        } else if data.attribute("type") == Some("primary") {
            findings.extend(primary(dir, &path, &mut listed)?);
        }
    }
    findings.extend(unlisted(dir, "rpm", &listed)?);
    Ok(findings)
}

fn primary(dir: &Path, path: &Path, listed: &mut BTreeSet<PathBuf>) -> anyhow::Result<Vec<String>> {
    let packed = std::fs::read(path).map_err(fail::io("read", path))?;
    let text = match read::unpacked_text(path, &packed, 256 << 20) {
        Ok(text) => text,
        Err(error) => return Ok(vec![format!("`{}`: {error}", path.display())]),
    };
    let document = match roxmltree::Document::parse(&text) {
        Ok(document) => document,
        Err(error) => return Ok(vec![format!("`{}` is no XML: {error}", path.display())]),
    };
    let mut findings = Vec::new();
    for package in children(document.root_element(), "package") {
        let (name, sum) = location_and_sum(package);
        let path = dir.join(&name);
        findings.extend(one(&path, &name, &sum));
        listed.insert(path);
    }
    Ok(findings)
}

fn children<'a>(
    node: roxmltree::Node<'a, 'a>,
    name: &'a str,
) -> impl Iterator<Item = roxmltree::Node<'a, 'a>> {
    node.children().filter(move |child| child.has_tag_name(name) || child.tag_name().name() == name)
}

/// What `location` and `checksum` of an entry say.
fn location_and_sum(node: roxmltree::Node<'_, '_>) -> (String, String) {
    let child = |name: &str| node.children().find(|child| child.tag_name().name() == name);
    let location = child("location").and_then(|node| node.attribute("href")).unwrap_or_default();
    let sum = child("checksum").and_then(|node| node.text()).unwrap_or_default();
    (location.to_owned(), sum.trim().to_owned())
}
