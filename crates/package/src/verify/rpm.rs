//! Checks `repodata`: its signature and all that it lists.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::error::VerifyError;
use super::listed::{check_file, read, unlisted, within};
use crate::finding::Finding;
use crate::read::{INDEX_MAX, unpacked_text};
use crate::signing::Keyring;

/// So many nodes are a gigabyte.
const NODES_MAX: u32 = 1 << 24;

/// What is wrong with the index that dnf and zypper read.
///
/// Source: createrepo_c, "Repository metadata"; `repomd.xml` and `primary.xml`.
pub(super) fn check(
    dir: &Path,
    repomd: &Path,
    keyring: Option<&Keyring>,
    listed: &mut BTreeSet<PathBuf>,
) -> Result<Vec<Finding>, VerifyError> {
    let mut findings = Vec::new();
    let text = match read(repomd) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(vec!["there is none, and a `repodata`".to_owned().into()]);
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
    let index = match parsed(&text) {
        Ok(index) => index,
        Err(error) => {
            findings.push(format!("it is no XML: {error}").into());
            return Ok(findings);
        }
    };
    for data in children(index.root_element(), "data") {
        let (name, sum) = location_and_sum(data);
        let Some(path) = within(dir, &name) else {
            findings.push(format!("`{name}` leads out of the repository").into());
            continue;
        };
        if let Some(finding) = check_file(&path, &name, None, &sum, "the index") {
            findings.push(finding.into());
        } else if data.attribute("type") == Some("primary") {
            findings.extend(primary(dir, &path, listed).into_iter().map(Finding::from));
        }
    }
    findings.extend(unlisted(dir, "rpm", listed)?);
    Ok(findings)
}

/// What is wrong with the list of packages, or with those.
fn primary(dir: &Path, path: &Path, listed: &mut BTreeSet<PathBuf>) -> Vec<String> {
    let text = read(path).and_then(|packed| unpacked_text(path, &packed, INDEX_MAX));
    let text = match text {
        Ok(text) => text,
        Err(error) => return vec![format!("`{}`: {error}", path.display())],
    };
    let document = match parsed(&text) {
        Ok(document) => document,
        Err(error) => return vec![format!("`{}` is no XML: {error}", path.display())],
    };
    let mut findings = Vec::new();
    for package in children(document.root_element(), "package") {
        let (name, sum) = location_and_sum(package);
        let Some(path) = within(dir, &name) else {
            findings.push(format!("`{name}` leads out of the repository"));
            continue;
        };
        findings.extend(check_file(&path, &name, None, &sum, "the index"));
        listed.insert(path);
    }
    findings
}

fn parsed(text: &str) -> Result<roxmltree::Document<'_>, roxmltree::Error> {
    let options = roxmltree::ParsingOptions { nodes_limit: NODES_MAX, ..Default::default() };
    roxmltree::Document::parse_with_options(text, options)
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
