//! The JSON manifest and the checksums that lie beside what was built: what
//! was made from what, by which compiler, and what is missing.

use std::path::Path;

use gfxpack_package::{Written, sums};
use gfxpack_plan::plan::Plan;
use gfxpack_plan::{Digest, KernelKey, Target};
use serde::Serialize;

use crate::build::MadeKdb;
use crate::fail;
use crate::packages::MadePackage;

/// Version of the manifest's format.
const FORMAT: u32 = 1;
/// The manifest's name.
const FILE_NAME: &str = "manifest.json";

#[derive(Serialize)]
struct Manifest<'a> {
    format: u32,
    generator: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compiler: Option<Compiler<'a>>,
    /// Whether every kernel asked for is in its kdb.
    complete: bool,
    targets: Vec<Entry<'a>>,
    sources: Vec<Source<'a>>,
}

#[derive(Serialize)]
struct Compiler<'a> {
    identity: &'a str,
    digest: Digest,
}

#[derive(Serialize)]
struct Entry<'a> {
    target: &'a Target,
    gfx: &'a str,
    kernels: u64,
    kdb: File<'a>,
    packages: Vec<Package<'a>>,
    missing: Vec<Missing<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    file: String,
    size: u64,
    sha256: &'a str,
}

#[derive(Serialize)]
struct Package<'a> {
    format: &'a str,
    name: &'a str,
    version: &'a str,
    #[serde(flatten)]
    file: File<'a>,
}

#[derive(Serialize)]
struct Missing<'a> {
    #[serde(flatten)]
    key: &'a KernelKey,
    reason: &'a str,
}

#[derive(Serialize)]
struct Source<'a> {
    name: &'a str,
    digest: Digest,
}

/// Writes `manifest.json` and `SHA256SUMS` into `out`.
pub(crate) fn write(
    out: &Path,
    plan: Option<&Plan>,
    kdbs: &[MadeKdb],
    packages: &[MadePackage],
) -> anyhow::Result<()> {
    let mut files: Vec<Written> = packages.iter().map(|package| package.written.clone()).collect();
    let mut digests = Vec::new();
    for kdb in kdbs {
        let written = sums::digest_file(&kdb.path)?;
        // kdbs that were only packaged may lie anywhere.
        if kdb.path.starts_with(out) {
            files.push(written.clone());
        }
        digests.push(written);
    }
    let relative = |path: &Path| path.strip_prefix(out).unwrap_or(path).display().to_string();
    fn describe(file: String, written: &Written) -> File<'_> {
        File { file, size: written.size, sha256: &written.sha256 }
    }
    let targets = kdbs.iter().zip(&digests).map(|(kdb, written)| Entry {
        target: &kdb.target,
        gfx: kdb.target.id().processor(),
        kernels: kdb.kernels,
        kdb: describe(relative(&kdb.path), written),
        packages: packages
            .iter()
            .filter(|package| package.target == kdb.target)
            .map(|package| Package {
                format: package.format,
                name: &package.name,
                version: &package.version,
                file: describe(relative(&package.written.path), &package.written),
            })
            .collect(),
        missing: kdb.missing.iter().map(|(key, reason)| Missing { key, reason }).collect(),
    });
    let mut sources: Vec<Source<'_>> = plan
        .into_iter()
        .flat_map(|plan| &plan.sources)
        .map(|source| Source { name: &source.name, digest: source.digest() })
        .collect();
    sources.sort_by_key(|source| source.name);
    let manifest = Manifest {
        format: FORMAT,
        generator: concat!("gfxpack ", env!("CARGO_PKG_VERSION")),
        plan: plan.map(Plan::digest),
        compiler: plan.map(|plan| Compiler {
            identity: &plan.toolchain.identity,
            digest: plan.toolchain.digest,
        }),
        complete: kdbs.iter().all(|kdb| kdb.missing.is_empty()),
        targets: targets.collect(),
        sources,
    };
    let mut text = serde_json::to_string_pretty(&manifest)?;
    text.push('\n');
    let path = out.join(FILE_NAME);
    replace(&path, text.as_bytes()).map_err(fail::io("write", &path))?;
    files.push(sums::digest_file(&path)?);
    sums::write_sha256sums(out, &files)?;
    Ok(())
}

/// Writes a file whole or not at all.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    gfxpack_compile::write_atomic(path, &[bytes])
}
