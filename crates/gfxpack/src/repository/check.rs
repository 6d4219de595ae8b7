//! Checks the indexes of a repository: signatures, what they list, and that
//! they list it all.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_package::{read, sums};

use super::packages;
use crate::fail;
use crate::finding::Finding;
use crate::signing::{self, Keyring};

/// An index of all of Debian is 60 MB.
pub(super) const INDEX_MAX: u64 = 256 << 20;

/// So many nodes are a gigabyte.
const NODES_MAX: u32 = 1 << 24;

/// What was found out about the indexes of a directory.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Each index with what is wrong with it.
    pub(crate) indexes: Vec<(PathBuf, Vec<Finding>)>,
    /// The packages that they list.
    pub(crate) listed: BTreeSet<PathBuf>,
}

/// Every index below `dir`.
pub(crate) fn check(dir: &Path, keyring: Option<&Keyring>) -> anyhow::Result<Checked> {
    let mut checked = Checked::default();
    let suites = dir.join("dists");
    if suites.is_dir() {
        let mut tops = Vec::new();
        for entry in std::fs::read_dir(&suites).map_err(fail::io("read", &suites))? {
            tops.push(entry.map_err(fail::io("read", &suites))?.path());
        }
        tops.retain(|top| top.is_dir());
        tops.sort();
        for top in &tops {
            let checked_one = apt(dir, top, keyring, &mut checked.listed)?;
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
        let findings = rpm(dir, &repomd, keyring, &mut checked.listed)?;
        checked.indexes.push((repomd, findings));
    }
    for (_, findings) in &mut checked.indexes {
        findings.dedup();
    }
    Ok(checked)
}

/// The bytes of an index or a signature, which is a file and no larger than
/// such are.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read::bytes(path, INDEX_MAX)
}

/// Where a listed file lies; nowhere if its name leads out of the directory.
pub(crate) fn within(dir: &Path, name: &str) -> Option<PathBuf> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    (!name.is_empty() && Path::new(name).components().all(plain)).then(|| dir.join(name))
}

/// What a file says that need not be there.
fn optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A suite: apt takes `InRelease`, and `Release` with `Release.gpg` where it
/// finds none.
///
/// Source: Debian wiki, `DebianRepository/Format`.
fn apt(
    dir: &Path,
    top: &Path,
    keyring: Option<&Keyring>,
    listed: &mut BTreeSet<PathBuf>,
) -> anyhow::Result<(PathBuf, Vec<Finding>)> {
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
        (Some(signed), Some(keyring)) => Some(keyring.text(signed)?),
        (Some(signed), None) => Some(signing::clear_text(signed).map_err(Finding::from)),
        (None, _) => None,
    };
    match (&within, &plain) {
        (Some(Ok(text)), Some(plain)) if text != plain => {
            findings.push("`InRelease` says something else".to_owned().into());
        }
        (Some(Err(why)), _) => findings.push(why.clone().of("the signature of `InRelease`")),
        (Some(Ok(_)) | None, _) => {}
    }
    match (keyring, &plain, &detached) {
        (Some(keyring), Some(_), Some(signature)) => {
            let refused = keyring.refuses(signature, &release)?;
            findings.extend(refused.map(|why| why.of("its signature")));
        }
        // apt needs one of the two.
        (Some(_), Some(_), None) if within.is_none() => {
            let why = "it is not signed: there is neither `InRelease` nor `Release.gpg`";
            findings.push(Finding::unsigned(why));
        }
        _ => {}
    }
    let (index, bytes) = match (plain, within) {
        (Some(plain), _) => (release, plain),
        (None, Some(text)) => (top.join("InRelease"), text.unwrap_or_default()),
        (None, None) => {
            findings.push("there is neither `Release` nor `InRelease` in it".to_owned().into());
            return Ok((top.to_owned(), findings));
        }
    };
    let wrong = listed_by(dir, top, &String::from_utf8_lossy(&bytes), listed);
    findings.extend(wrong.into_iter().map(Finding::from));
    Ok((index, findings))
}

/// What is wrong with the files that a `Release` lists.
fn listed_by(dir: &Path, top: &Path, release: &str, listed: &mut BTreeSet<PathBuf>) -> Vec<String> {
    let mut findings = Vec::new();
    let by_hash = release.lines().any(|line| line.trim_end() == "Acquire-By-Hash: yes");
    let sums = release.lines().skip_while(|line| line.trim_end() != "SHA256:").skip(1);
    for line in sums.take_while(|line| line.starts_with(' ')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [sum, size, name] = words.as_slice() else {
            findings.push(format!("`{line}` lists no file"));
            continue;
        };
        let size = size.parse().ok();
        let Some(path) = within(top, name) else {
            findings.push(format!("`{name}` leads out of the suite"));
            continue;
        };
        // apt asks by the digest, and whoever has an old apt by the name.
        if by_hash {
            let below = format!("by-hash/SHA256/{sum}");
            let below = Path::new(name).with_file_name(below).display().to_string();
            findings.extend(within(top, &below).map_or_else(
                || Some(format!("`{below}` leads out of the suite")),
                |path| one(&path, &below, size, sum, "it"),
            ));
        }
        if !name.ends_with("/Packages") {
            findings.extend(one(&path, name, size, sum, "it"));
            continue;
        }
        match read(&path) {
            Ok(bytes) if Digest::of(&bytes).to_string() == *sum => {
                findings.extend(stanzas(dir, &String::from_utf8_lossy(&bytes), listed));
            }
            Ok(_) => findings.push(format!("`{name}` is not what it says")),
            Err(error) => findings.push(format!("`{name}`: {error}")),
        }
    }
    findings
}

fn stanzas(dir: &Path, packages: &str, listed: &mut BTreeSet<PathBuf>) -> Vec<String> {
    let mut findings = Vec::new();
    for stanza in packages.split("\n\n").filter(|stanza| !stanza.trim().is_empty()) {
        let field = |name: &str| {
            let line = stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_default().trim().to_owned()
        };
        let name = field("Filename");
        let Some(path) = within(dir, &name) else {
            findings.push(format!("`{name}` leads out of the repository"));
            continue;
        };
        if listed.insert(path.clone()) {
            let size = field("Size").parse().ok();
            findings.extend(one(&path, &name, size, &field("SHA256"), "the index"));
        }
    }
    findings
}

/// What is wrong with a file that `index` lists.
fn one(path: &Path, name: &str, size: Option<u64>, sha256: &str, index: &str) -> Option<String> {
    let other = || Some(format!("`{name}` is not what {index} says"));
    // What is larger than listed need not be read to its end.
    if size.is_some_and(|size| path.metadata().is_ok_and(|there| there.len() != size)) {
        return other();
    }
    match sums::digest_file(path) {
        Ok(file) if file.sha256 == sha256 => None,
        Ok(_) => other(),
        Err(error) => Some(format!("`{name}`: {}", fail::in_full(&error))),
    }
}

fn unlisted(dir: &Path, ending: &str, listed: &BTreeSet<PathBuf>) -> anyhow::Result<Vec<Finding>> {
    let found = packages(dir)?.into_iter().filter(|path| {
        path.extension().is_some_and(|extension| extension == ending) && !listed.contains(path)
    });
    let finding = |path: PathBuf| format!("`{}` is not in the index", path.display());
    Ok(found.map(|path| Finding::unlisted(finding(path))).collect())
}

/// Source: createrepo_c, "Repository metadata"; `repomd.xml` and `primary.xml`.
fn rpm(
    dir: &Path,
    repomd: &Path,
    keyring: Option<&Keyring>,
    listed: &mut BTreeSet<PathBuf>,
) -> anyhow::Result<Vec<Finding>> {
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
                let refused = keyring.refuses(&signature, repomd)?;
                findings.extend(refused.map(|why| why.of("its signature")));
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
        if let Some(finding) = one(&path, &name, None, &sum, "the index") {
            findings.push(finding.into());
        } else if data.attribute("type") == Some("primary") {
            findings.extend(primary(dir, &path, listed).into_iter().map(Finding::from));
        }
    }
    findings.extend(unlisted(dir, "rpm", listed)?);
    Ok(findings)
}

fn primary(dir: &Path, path: &Path, listed: &mut BTreeSet<PathBuf>) -> Vec<String> {
    let text = read(path).and_then(|packed| read::unpacked_text(path, &packed, INDEX_MAX));
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
        findings.extend(one(&path, &name, None, &sum, "the index"));
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
