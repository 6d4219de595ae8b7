//! The JSON manifest and the checksums that lie beside what was built: what
//! was made from what, by which compiler, and what is missing.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::path::{Component, Path, PathBuf};

use gfxpack_package::{Written, sums};
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::plan::{Plan, Row};
use gfxpack_plan::{Digest, KernelKey, Target};
use serde::{Deserialize, Serialize};

use crate::build::MadeKdb;
use crate::fail;
use crate::packages::MadePackage;
use crate::prepare::Licenses;

/// Version of the manifest's format.
const FORMAT: u32 = 1;
/// The manifest's name.
const FILE_NAME: &str = "manifest.json";

/// What lies in a directory of packages.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    generator: String,
    /// Whether every kernel asked for is in its kdb.
    complete: bool,
    /// Sorted by target.
    targets: Vec<Entry>,
}

/// One kdb, with its packages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    target: Target,
    gfx: String,
    kernels: u64,
    #[serde(flatten)]
    pub(crate) origin: Origin,
    kdb: File,
    packages: Vec<Package>,
    missing: Vec<Missing>,
}

/// What a kdb was made from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Digest of the kdb's part of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compiler: Option<Compiler>,
    #[serde(default)]
    sources: Vec<Source>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Compiler {
    identity: String,
    digest: Digest,
    /// What its device libraries lack and gfxpack made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    supplied: Vec<Supplied>,
}

/// A file made in place of one that newer device libraries have.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Supplied {
    file: String,
    symbol: String,
    value: u32,
    made_by: String,
    reason: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct File {
    file: String,
    size: u64,
    sha256: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Package {
    format: String,
    name: String,
    version: String,
    #[serde(flatten)]
    file: File,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Missing {
    kernel_name: String,
    kernel_args: String,
    reason: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Source {
    name: String,
    digest: Digest,
    licenses: Vec<License>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct License {
    license: String,
    copyright: String,
}

impl Origin {
    /// What the plan says of one of its kdbs.
    pub(crate) fn of(plan: &Plan, kdb: usize, licenses: &Licenses) -> Self {
        let rows = plan.kdbs[kdb].rows.iter();
        let used: BTreeSet<usize> = rows.map(|row| plan.jobs[row.job].source).collect();
        let mut sources: Vec<Source> = used
            .into_iter()
            .map(|source| &plan.sources[source])
            .map(|source| Source {
                name: source.name.clone(),
                digest: source.digest(),
                licenses: licenses
                    .get(&source.name)
                    .into_iter()
                    .flatten()
                    .map(|SourceLicense { license, copyright }| License {
                        license: license.clone(),
                        copyright: copyright.clone(),
                    })
                    .collect(),
            })
            .collect();
        sources.sort_by(|a, b| (&a.name, a.digest).cmp(&(&b.name, b.digest)));
        let toolchain = &plan.toolchains[plan.kdbs[kdb].toolchain];
        Self {
            plan: Some(plan.kdb_digest(kdb)),
            compiler: Some(Compiler {
                identity: toolchain.identity.clone(),
                digest: toolchain.digest,
                supplied: supplied(plan, kdb),
            }),
            sources,
        }
    }

    /// The compiler in words, if it is known.
    pub(crate) fn compiler(&self) -> Option<&str> {
        self.compiler.as_ref().map(|compiler| compiler.identity.as_str())
    }

    /// The licences of the sources.
    pub(crate) fn licenses(&self) -> Licenses {
        let mut licenses = Licenses::new();
        for source in &self.sources {
            let of_source = licenses.entry(source.name.clone()).or_default();
            of_source.extend(source.licenses.iter().map(|License { license, copyright }| {
                SourceLicense { license: license.clone(), copyright: copyright.clone() }
            }));
        }
        licenses
    }
}

impl Entry {
    /// The keys that are missing from the kdb, with the reason.
    pub(crate) fn missing(&self) -> Vec<(KernelKey, String)> {
        let key = |missing: &Missing| KernelKey {
            kernel_name: missing.kernel_name.clone(),
            kernel_args: missing.kernel_args.clone(),
        };
        self.missing.iter().map(|missing| (key(missing), missing.reason.clone())).collect()
    }
}

/// The supplied constants that a kdb's objects were made with: those for its
/// processor, and the code object version's where a key asks for that.
fn supplied(plan: &Plan, kdb: usize) -> Vec<Supplied> {
    let kdb = &plan.kdbs[kdb];
    let toolchain = &plan.toolchains[kdb.toolchain];
    let gfx = kdb.target.id().processor();
    let asks = |row: &Row| {
        let arguments = &plan.jobs[row.job].arguments;
        arguments.iter().any(|word| word == "-mcode-object-version=6")
    };
    let of_target = toolchain.supplied.iter().filter(|constant| match &constant.gfx {
        Some(only) => only == gfx,
        None => kdb.rows.iter().any(asks),
    });
    let lacking = |only: Option<&str>| match only {
        Some(gfx) => format!("the installed device libraries have none for {gfx}"),
        None => "the installed device libraries have none for code object version 6".to_owned(),
    };
    of_target
        .map(|constant| Supplied {
            file: constant.file.clone(),
            symbol: constant.symbol.clone(),
            value: constant.value,
            made_by: toolchain.identity.clone(),
            reason: lacking(constant.gfx.as_deref()),
        })
        .collect()
}

fn read(dir: &Path) -> Option<Manifest> {
    let text = std::fs::read(dir.join(FILE_NAME)).ok()?;
    let manifest: Manifest = serde_json::from_slice(&text).ok()?;
    (manifest.format == FORMAT).then_some(manifest)
}

/// What the manifest of the build that made a kdb says of it, if it still
/// lies where the build left it and the kdb is as it was.
pub(crate) fn of_kdb(kdb: &Path) -> anyhow::Result<Option<Entry>> {
    let digest = sums::digest_file(kdb)?.sha256;
    let absolute = std::path::absolute(kdb).map_err(fail::io("find", kdb))?;
    let manifests = absolute.ancestors().skip(1).take(2).filter_map(read);
    let mut entries = manifests.flat_map(|manifest| manifest.targets);
    Ok(entries.find(|entry| entry.kdb.sha256 == digest))
}

/// Writes `manifest.json` and `SHA256SUMS` into `out`. Targets of earlier
/// builds whose files lie there unchanged stay listed; packages that an
/// earlier build made for these targets and this one did not are removed,
/// since their kdb is no longer what they hold.
pub(crate) fn write(out: &Path, kdbs: &[MadeKdb], packages: &[MadePackage]) -> anyhow::Result<()> {
    let out = &std::fs::canonicalize(out).map_err(fail::io("find", out))?;
    let mut files: Vec<Written> = Vec::new();
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for kdb in kdbs {
        let entry = entry(out, kdb, packages, &mut files)?;
        entries.insert(kdb.target.to_string(), entry);
    }
    for old in read(out).into_iter().flat_map(|manifest| manifest.targets) {
        let name = old.target.to_string();
        match entries.entry(name) {
            btree_map::Entry::Occupied(_) => remove_stale(out, &old, packages),
            btree_map::Entry::Vacant(place) => {
                if let Some(kept) = unchanged(out, &old) {
                    files.extend(kept);
                    place.insert(old);
                }
            }
        }
    }
    let manifest = Manifest {
        format: FORMAT,
        generator: concat!("gfxpack ", env!("CARGO_PKG_VERSION")).to_owned(),
        complete: entries.values().all(|entry| entry.missing.is_empty()),
        targets: entries.into_values().collect(),
    };
    let mut text = serde_json::to_string_pretty(&manifest)?;
    text.push('\n');
    let path = out.join(FILE_NAME);
    replace(&path, text.as_bytes()).map_err(fail::io("write", &path))?;
    files.push(sums::digest_file(&path)?);
    sums::write_sha256sums(out, &files)?;
    Ok(())
}

fn entry(
    out: &Path,
    kdb: &MadeKdb,
    packages: &[MadePackage],
    files: &mut Vec<Written>,
) -> anyhow::Result<Entry> {
    let mut path = std::fs::canonicalize(&kdb.path).map_err(fail::io("find", &kdb.path))?;
    let mut written = sums::digest_file(&path)?;
    // kdbs that were only packaged may lie anywhere, and are named alone.
    match path.strip_prefix(out).map(Path::to_owned) {
        Ok(relative) => {
            written.path = out.join(&relative);
            files.push(written.clone());
            path = relative;
        }
        Err(_) => path = PathBuf::from(written.file_name.clone()),
    }
    let describe = |name: String, written: &Written| File {
        file: name,
        size: written.size,
        sha256: written.sha256.clone(),
    };
    let mut listed = Vec::new();
    for package in packages.iter().filter(|package| package.target == kdb.target) {
        let mut written = package.written.clone();
        written.path = out.join(&written.file_name);
        listed.push(Package {
            format: package.format.to_owned(),
            name: package.name.clone(),
            version: package.version.clone(),
            file: describe(written.file_name.clone(), &written),
        });
        files.push(written);
    }
    Ok(Entry {
        target: kdb.target.clone(),
        gfx: kdb.target.id().processor().to_owned(),
        kernels: kdb.kernels,
        origin: kdb.origin.clone(),
        kdb: describe(path.display().to_string(), &written),
        packages: listed,
        missing: kdb
            .missing
            .iter()
            .map(|(key, reason)| Missing {
                kernel_name: key.kernel_name.clone(),
                kernel_args: key.kernel_args.clone(),
                reason: reason.clone(),
            })
            .collect(),
    })
}

/// A name from a manifest that stays within its directory.
fn within(out: &Path, name: &str) -> Option<PathBuf> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    (!name.is_empty() && Path::new(name).components().all(plain)).then(|| out.join(name))
}

fn remove_stale(out: &Path, old: &Entry, packages: &[MadePackage]) {
    for package in &old.packages {
        let made = packages.iter().any(|new| new.written.file_name == package.file.file);
        if let Some(path) = within(out, &package.file.file).filter(|_| !made) {
            std::fs::remove_file(path).ok();
        }
    }
}

/// The files of an entry, if all lie there with the size they had.
fn unchanged(out: &Path, old: &Entry) -> Option<Vec<Written>> {
    let files = old.packages.iter().map(|package| &package.file).chain([&old.kdb]);
    files
        .map(|file| {
            let path = within(out, &file.file)?;
            (path.metadata().ok()?.len() == file.size).then(|| Written {
                file_name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                path,
                size: file.size,
                sha256: file.sha256.clone(),
            })
        })
        .collect()
}

/// Writes a file whole or not at all.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    gfxpack_compile::write_atomic(path, &[bytes])
}
