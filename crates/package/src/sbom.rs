//! Writes a package's bill of materials: SPDX 2.3 as JSON.
//!
//! It lists what the package installs, the sources and tools that it was made
//! with, and the archives that contain it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use gfxpack_model::package::{Content, PackageSpec};
use gfxpack_model::{KernelFileFormat, Result};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::error::{reading, writing};
use crate::output::{Hashing, Output, hex};
use crate::{Written, text};

/// A source file that was compiled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Its path relative to the sources.
    pub path: String,
    /// SHA-1 in hexadecimal, which SPDX requires for every file.
    pub sha1: String,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// SPDX expression, if known.
    pub license: Option<String>,
    /// Copyright holders, if known.
    pub copyright: Option<String>,
}

/// A tool that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// Its version; may be empty.
    pub version: String,
    /// SHA-256 in hexadecimal; may be empty.
    pub sha256: String,
    /// What the digest covers, or another remark; may be empty.
    pub comment: String,
}

/// How a package's contents were made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildProvenance {
    /// All sources, including headers.
    pub sources: Vec<Source>,
    /// Compiler, libraries, packager.
    pub tools: Vec<Tool>,
}

/// The name of the bill's file: `<name>-<version>-<revision>.spdx.json`.
pub fn file_name(spec: &PackageSpec) -> String {
    let PackageSpec { name, version, revision, .. } = spec;
    format!("{name}-{version}-{revision}.spdx.json")
}

/// SHA-1 and SHA-256 in hexadecimal. SPDX requires both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksums {
    /// SHA-1.
    pub sha1: String,
    /// SHA-256.
    pub sha256: String,
}

impl Checksums {
    /// The checksums of bytes in memory.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { sha1: hex(&Sha1::digest(bytes)), sha256: hex(&Sha256::digest(bytes)) }
    }

    /// The checksums of a file whose SHA-256 is known.
    pub fn of_file(path: &Path, sha256: String) -> Result<Self> {
        let failed = reading(path);
        let file = File::open(path).map_err(&failed)?;
        let mut hashing = Hashing::with(io::sink(), Sha1::new());
        io::copy(&mut BufReader::with_capacity(256 << 10, file), &mut hashing).map_err(failed)?;
        Ok(Self { sha1: hashing.finish().1, sha256 })
    }
}

/// Writes the bill of a package and its `archives` into `dir`. `checksums` are
/// those of the spec's files, in its order.
///
/// Source: SPDX specification 2.3, clauses 6 to 11 and its JSON schema.
pub fn write(
    spec: &PackageSpec,
    checksums: &[Checksums],
    archives: &[Written],
    making: &BuildProvenance,
    dir: &Path,
) -> Result<Written> {
    put(&document(spec, checksums, archives, making), dir, &file_name(spec))
}

/// Removes archives that are not in `there` from a bill in `dir`, so that it is
/// the same as if it had been written without them. Returns `None` if there is
/// nothing to remove, or the file is no bill.
pub fn retain(dir: &Path, file_name: &str, there: &[&str]) -> Result<Option<Written>> {
    let path = dir.join(file_name);
    let text = std::fs::read(&path).map_err(reading(&path))?;
    let document = serde_json::from_slice(&text).ok();
    match document.and_then(|document| retained(document, there)) {
        Some(document) => put(&document, dir, file_name).map(Some),
        None => Ok(None),
    }
}

fn put(document: &Value, dir: &Path, file_name: &str) -> Result<Written> {
    let mut output = Output::create(dir, file_name)?;
    let path = output.path();
    let mut text = format!("{document:#}");
    text.push('\n');
    output.write_all(text.as_bytes()).map_err(writing(&path))?;
    output.commit()
}

fn retained(mut document: Value, there: &[&str]) -> Option<Value> {
    let id_of = |entry: &Value, field: &str| {
        entry[field].as_str().filter(|id| id.starts_with(ARCHIVE)).map(str::to_owned)
    };
    let packages = document.get_mut("packages")?.as_array_mut()?;
    let before = packages.len();
    // Archives are numbered again, without gaps.
    let mut ids = BTreeMap::new();
    packages.retain_mut(|package| {
        let Some(id) = id_of(package, "SPDXID") else { return true };
        let stays = package["packageFileName"].as_str().is_some_and(|name| there.contains(&name));
        if stays {
            let new = format!("{ARCHIVE}{}", ids.len());
            package["SPDXID"] = new.clone().into();
            ids.insert(id, new);
        }
        stays
    });
    if packages.len() == before {
        return None;
    }
    document.get_mut("relationships")?.as_array_mut()?.retain_mut(|relation| {
        let Some(id) = id_of(relation, "spdxElementId") else { return true };
        let new = ids.get(&id);
        if let Some(new) = new {
            relation["spdxElementId"] = new.clone().into();
        }
        new.is_some()
    });
    document["documentNamespace"] = name_space(&document).into();
    Some(document)
}

/// A URI that identifies the document reproducibly, from its name and from the
/// files and archives in it.
fn name_space(document: &Value) -> String {
    let mut all = Sha256::new();
    let entries = ["files", "packages"].into_iter().filter_map(|list| document[list].as_array());
    for entry in entries.flatten() {
        let name = ["fileName", "packageFileName"].into_iter().find_map(|it| entry[it].as_str());
        let mut checksums = entry["checksums"].as_array().into_iter().flatten();
        let sha256 = checksums.find(|checksum| checksum["algorithm"] == "SHA256");
        let sha256 = sha256.and_then(|checksum| checksum["checksumValue"].as_str());
        if let (Some(name), Some(sha256)) = (name, sha256) {
            all.update(format!("{sha256}  {name}\n"));
        }
    }
    let (name, unique) = (document["name"].as_str(), hex(&all.finalize()));
    format!("https://spdx.org/spdxdocs/{}-{unique}", name.unwrap_or_default())
}

fn document(
    spec: &PackageSpec,
    checksums: &[Checksums],
    archives: &[Written],
    making: &BuildProvenance,
) -> Value {
    let full = format!("{}-{}", spec.version, spec.revision);
    let mut relations = vec![relation("SPDXRef-DOCUMENT", "DESCRIBES", PACKAGE)];
    let mut files = installed_files(spec, checksums, making, &mut relations);
    files.extend(making.sources.iter().enumerate().map(source_entry));

    let mut packages = vec![main_entry(spec, &full, checksums)];
    for (number, archive) in archives.iter().enumerate() {
        let id = format!("{ARCHIVE}{number}");
        packages.push(archive_entry(&id, spec, &full, archive));
        relations.push(relation(&id, "PACKAGE_OF", PACKAGE));
    }
    for (number, tool) in making.tools.iter().enumerate() {
        let id = format!("SPDXRef-Tool-{number}");
        packages.push(tool_entry(&id, tool));
        relations.push(relation(&id, "BUILD_TOOL_OF", PACKAGE));
    }

    let known = [&spec.license].into_iter().chain(making.sources.iter().flat_map(|s| &s.license));
    let mut document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{}-{full}", spec.name),
        "documentNamespace": null,
        "creationInfo": {
            "created": text::rfc3339(spec.source_date_epoch),
            "creators": [
                concat!("Tool: gfxpack-", env!("CARGO_PKG_VERSION")),
                format!("Person: {}", person(&spec.maintainer)),
            ],
        },
        "packages": packages,
        "files": files,
        "relationships": relations,
    });
    let references = own_licenses(known.map(String::as_str));
    document["documentNamespace"] = name_space(&document).into();
    if !references.is_empty() {
        document["hasExtractedLicensingInfos"] = references.into();
    }
    document
}

/// The files that the package installs, and their relations to it and to the
/// sources.
fn installed_files(
    spec: &PackageSpec,
    checksums: &[Checksums],
    making: &BuildProvenance,
    relations: &mut Vec<Value>,
) -> Vec<Value> {
    let mut files = Vec::new();
    for (number, (file, Checksums { sha1, sha256 })) in spec.files.iter().zip(checksums).enumerate()
    {
        let id = format!("SPDXRef-Installed-{number}");
        relations.push(relation(PACKAGE, "CONTAINS", &id));
        // Only files with kernels are compiled from the sources: gfxpack itself
        // writes those in memory, and the others were measured on a GPU.
        let holds_kernels = KernelFileFormat::of_file_name(Path::new(&file.path)).is_some();
        let compiled = matches!(file.content, Content::File(_)) && holds_kernels;
        let sources = 0..if compiled { making.sources.len() } else { 0 };
        relations
            .extend(sources.map(|source| {
                relation(&id, "GENERATED_FROM", &format!("SPDXRef-Source-{source}"))
            }));
        files.push(file_entry(&id, &format!(".{}", file.path), sha1, sha256));
    }
    files
}

/// The entry of the installed package, with the SHA-1s of its files.
fn main_entry(spec: &PackageSpec, full: &str, checksums: &[Checksums]) -> Value {
    let mut sha1s: Vec<&str> = checksums.iter().map(|file| &*file.sha1).collect();
    sha1s.sort_unstable();
    let verification = hex(&Sha1::digest(sha1s.concat()));
    let mut package = package_entry(PACKAGE, &spec.name, full);
    package["filesAnalyzed"] = true.into();
    package["packageVerificationCode"] = json!({ "packageVerificationCodeValue": verification });
    package["licenseDeclared"] = license(&spec.license).into();
    package["summary"] = spec.summary.clone().into();
    package["primaryPackagePurpose"] = "INSTALL".into();
    package["externalRefs"] = external(&package_url(spec, full));
    if !spec.homepage.is_empty() {
        package["homepage"] = spec.homepage.clone().into();
    }
    package
}

fn archive_entry(id: &str, spec: &PackageSpec, full: &str, archive: &Written) -> Value {
    let mut entry = package_entry(id, &spec.name, full);
    entry["packageFileName"] = archive.file_name.clone().into();
    entry["checksums"] = sha256_alone(&archive.sha256);
    entry["primaryPackagePurpose"] = "ARCHIVE".into();
    let url = format!("{}?checksum=sha256:{}", package_url(spec, full), archive.sha256);
    entry["externalRefs"] = external(&url);
    entry
}

fn source_entry((number, source): (usize, &Source)) -> Value {
    let id = format!("SPDXRef-Source-{number}");
    let mut entry = file_entry(&id, &format!("./{}", source.path), &source.sha1, &source.sha256);
    entry["fileTypes"] = json!(["SOURCE"]);
    if let Some(known) = &source.license {
        entry["licenseConcluded"] = license(known).into();
    }
    if let Some(copyright) = &source.copyright {
        entry["copyrightText"] = copyright.clone().into();
    }
    entry
}

fn tool_entry(id: &str, tool: &Tool) -> Value {
    let mut entry = package_entry(id, &tool.name, &tool.version);
    if !tool.sha256.is_empty() {
        entry["checksums"] = sha256_alone(&tool.sha256);
    }
    if !tool.comment.is_empty() {
        entry["comment"] = tool.comment.clone().into();
    }
    entry
}

const PACKAGE: &str = "SPDXRef-Package";
const ARCHIVE: &str = "SPDXRef-Archive-";
const UNKNOWN: &str = "NOASSERTION";

fn package_entry(id: &str, name: &str, version: &str) -> Value {
    let mut entry = json!({
        "SPDXID": id,
        "name": name,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": false,
    });
    if !version.is_empty() {
        entry["versionInfo"] = version.into();
    }
    entry
}

/// The package's URL. Its type is generic, since other types require a distribution or an index
/// that has the package.
///
/// Source: the purl specification, ECMA-427.
fn package_url(spec: &PackageSpec, full: &str) -> String {
    format!("pkg:generic/{}@{}", text::url_encoded(&spec.name), text::url_encoded(full))
}

fn external(url: &str) -> Value {
    json!([{
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": url,
    }])
}

fn file_entry(id: &str, name: &str, sha1: &str, sha256: &str) -> Value {
    json!({
        "SPDXID": id,
        "fileName": name,
        "checksums": [
            { "algorithm": "SHA1", "checksumValue": sha1 },
            { "algorithm": "SHA256", "checksumValue": sha256 },
        ],
    })
}

fn sha256_alone(sha256: &str) -> Value {
    json!([{ "algorithm": "SHA256", "checksumValue": sha256 }])
}

fn relation(from: &str, kind: &str, to: &str) -> Value {
    json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to })
}

/// A person in SPDX's syntax: `Name (mail)`.
fn person(maintainer: &str) -> String {
    maintainer.replace('<', "(").replace('>', ")")
}

/// The expression, or `NOASSERTION` if the licence is unknown.
fn license(expression: &str) -> &str {
    if expression == "LicenseRef-Unknown" { UNKNOWN } else { expression }
}

/// Licences that are not in SPDX's list, which a document must explain.
fn own_licenses<'a>(expressions: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let mut names: Vec<&str> = expressions
        .filter(|expression| license(expression) != UNKNOWN)
        .flat_map(|expression| expression.split([' ', '(', ')']))
        .filter(|word| word.starts_with("LicenseRef-"))
        .collect();
    names.sort_unstable();
    names.dedup();
    let entry = |name: &str| json!({ "licenseId": name, "extractedText": "See the sources." });
    names.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_licences_that_are_not_in_spdxs_list_are_explained() {
        let known = ["MIT", "LicenseRef-Unknown", "MIT AND (LicenseRef-a OR LicenseRef-b)"];
        let names: Vec<Value> = own_licenses(known.into_iter())
            .iter()
            .map(|entry| entry["licenseId"].clone())
            .collect();
        assert_eq!(names, ["LicenseRef-a", "LicenseRef-b"]);
        assert_eq!(license("LicenseRef-Unknown"), "NOASSERTION");
    }
}
