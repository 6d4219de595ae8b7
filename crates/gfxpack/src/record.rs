//! The JSON manifest and the checksums that lie beside what was built: what
//! was made from what, by which compiler, and what is missing.

mod bills;
mod earlier;

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use gfxpack_model::{Digest, KdbId, KernelKey, SourceId, Target};
use gfxpack_package::sbom::{self, Making, Tool};
use gfxpack_package::signing::Signer;
use gfxpack_package::{Written, sums};
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::plan::{Plan, Row};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha1::{Digest as _, Sha1};

use crate::build::MadeKdb;
use crate::destination::Destination;
use crate::fail;
use crate::output::{Output, shown};
use crate::prepare::{Library, Licenses, Prepared};
use crate::writers::Made;

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
    /// Packages of families, with their bills of material.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    families: Vec<Package>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    beside: Vec<File>,
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
    /// Bills of material and signatures of the packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    beside: Vec<File>,
    /// Performance and find databases in the packages, by their names there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tuning: Vec<File>,
    missing: Vec<Missing>,
}

/// What a kdb was made from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Digest of the kdb's part of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Digest>,
    /// What packages say of the kernels, without their licences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    library: Option<Library>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compiler: Option<Compiler>,
    #[serde(default)]
    sources: Vec<Source>,
    /// Sources that the policy on licences refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOutSource>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct LeftOutSource {
    name: String,
    reason: String,
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
    /// Where it installs the kdb and what is shipped with it; none in what
    /// holds no kdb, and in manifests of before this was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    installs: Vec<String>,
    /// The packages that a metapackage depends on; likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    depends: Vec<String>,
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
    /// The source and all it includes.
    #[serde(default)]
    files: Vec<SourceFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SourceFile {
    path: String,
    sha1: String,
    sha256: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct License {
    license: String,
    copyright: String,
}

/// What is said of the kernels of a target, without their licences.
fn library_of(prepared: &Prepared, target: &Target) -> Library {
    let library = &prepared.library;
    let processor = target.id().processor();
    let asked = library.asked.as_ref().map(|asked| asked.of_processor(processor));
    Library { licenses: Licenses::new(), asked, ..library.clone() }
}

impl Origin {
    /// What is known of one of the plan's kdbs before it is built.
    pub(crate) fn of(prepared: &Prepared, kdb: KdbId) -> Self {
        let (plan, licenses) = (&prepared.plan, &prepared.library.licenses);
        let rows = plan[kdb].rows.iter();
        let used: BTreeSet<SourceId> = rows.map(|row| plan[row.job].source).collect();
        let mut sources: Vec<Source> = used
            .into_iter()
            .map(|index| (index, &plan[index]))
            .map(|(index, source)| Source {
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
                files: prepared.sources.files(index).into_iter().map(SourceFile::of).collect(),
            })
            .collect();
        sources.sort_by(|a, b| (&a.name, a.digest).cmp(&(&b.name, b.digest)));
        let toolchain = &plan[plan[kdb].toolchain];
        Self {
            plan: Some(plan.kdb_digest(kdb)),
            library: Some(library_of(prepared, &plan[kdb].target))
                .filter(|library| *library != Library::default()),
            compiler: Some(Compiler {
                identity: toolchain.identity.clone(),
                digest: toolchain.digest,
                supplied: supplied(plan, kdb),
            }),
            sources,
            left_out: prepared
                .left_out
                .iter()
                .map(|(name, reason)| LeftOutSource { name: name.clone(), reason: reason.clone() })
                .collect(),
        }
    }

    /// What its packages say of the kernels.
    pub(crate) fn library(&self) -> Library {
        Library { licenses: self.licenses(), ..self.library.clone().unwrap_or_default() }
    }

    /// The compiler in words, if it is known.
    pub(crate) fn compiler(&self) -> Option<&str> {
        self.compiler.as_ref().map(|compiler| compiler.identity.as_str())
    }

    /// What a bill of material says: every file once, and the tools.
    pub(crate) fn making(&self) -> Making {
        let mut files: BTreeMap<(&str, &str), sbom::Source> = BTreeMap::new();
        for source in &self.sources {
            for file in &source.files {
                let entry = files.entry((&file.path, &file.sha256)).or_insert(sbom::Source {
                    path: file.path.clone(),
                    sha1: file.sha1.clone(),
                    sha256: file.sha256.clone(),
                    license: None,
                    copyright: None,
                });
                // Of what is included nobody says the licence.
                if file.path.rsplit('/').next() == Some(&source.name) && !source.licenses.is_empty()
                {
                    let texts = |part: fn(&License) -> &str| {
                        let texts: BTreeSet<&str> = source.licenses.iter().map(part).collect();
                        texts.into_iter().collect::<Vec<_>>()
                    };
                    entry.license = Some(texts(|license| &license.license).join(" AND "));
                    entry.copyright = Some(texts(|license| &license.copyright).join(", "));
                }
            }
        }
        let packager = Tool {
            name: "gfxpack".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: String::new(),
            comment: String::new(),
        };
        let compiler = self.compiler.iter().map(|compiler| Tool {
            name: compiler.identity.clone(),
            version: String::new(),
            sha256: compiler.digest.to_string(),
            comment: "The digest covers compiler, linker, their libraries, the headers and the \
                      device libraries."
                .to_owned(),
        });
        let tools = compiler.chain([packager]).collect();
        Making { sources: files.into_values().collect(), tools }
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

impl SourceFile {
    fn of((path, bytes): (&str, &[u8])) -> Self {
        let sha1: String = Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { path: path.to_owned(), sha1, sha256: Digest::of(bytes).to_string() }
    }
}

fn describe(name: String, written: &Written) -> File {
    File { file: name, size: written.size, sha256: written.sha256.clone() }
}

/// The packages for one target or, without one, for families; they are added
/// to the `files` to be summed.
fn listed(
    out: &Path,
    made: &Made,
    target: Option<&Target>,
    files: &mut Vec<Written>,
) -> Vec<Package> {
    let own = made.packages.iter().filter(|package| package.target.as_ref() == target);
    own.map(|package| {
        let mut written = package.written.clone();
        written.path = out.join(&written.file_name);
        let file = describe(written.file_name.clone(), &written);
        files.push(written);
        Package {
            format: package.format.to_owned(),
            name: package.name.clone(),
            version: package.version.clone(),
            file,
            installs: package.installs.clone(),
            depends: package.depends.clone(),
        }
    })
    .collect()
}

/// The signatures beside those packages; likewise.
fn signatures(
    out: &Path,
    made: &Made,
    target: Option<&Target>,
    files: &mut Vec<Written>,
) -> Vec<File> {
    let own = made.signatures.iter().filter(|(of, _)| of.as_ref() == target);
    own.map(|(_, written)| {
        let written = Written { path: out.join(&written.file_name), ..written.clone() };
        let file = describe(written.file_name.clone(), &written);
        files.push(written);
        file
    })
    .collect()
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
fn supplied(plan: &Plan, kdb: KdbId) -> Vec<Supplied> {
    let kdb = &plan[kdb];
    let toolchain = &plan[kdb.toolchain];
    let gfx = kdb.target.id().processor();
    let asks = |row: &Row| {
        let arguments = &plan[row.job].arguments;
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

/// Writes `manifest.json` and `SHA256SUMS` into `out`, whatever else writes
/// them at the same time. What earlier runs left there stays listed while it
/// holds ([`earlier`]); what does not hold any more is removed, and told. Bills
/// of material name the packages of earlier runs that stay, so they are written
/// here too.
/// The checksums are signed where there is a signer.
pub(crate) fn write(
    out: &Path,
    kdbs: &[&MadeKdb],
    made: &Made,
    signer: Option<&Signer>,
    output: &Output,
) -> anyhow::Result<()> {
    let given = out;
    let out = &std::fs::canonicalize(given).map_err(fail::io("find", given))?;
    let directory = std::fs::File::open(out).map_err(fail::io("open", out))?;
    // Where locks are not known, one run at a time is all there can be.
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive).ok();
    let mut files: Vec<Written> = Vec::new();
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for kdb in kdbs {
        let entry = entry(out, kdb, made, &mut files)?;
        entries.insert(kdb.target.to_string(), entry);
    }
    let mut families = listed(out, made, None, &mut files);
    let mut family_files = signatures(out, made, None, &mut files);
    if let Some(old) = read(out) {
        let mut removed = Vec::new();
        for mut old in old.targets {
            match entries.entry(old.target.to_string()) {
                btree_map::Entry::Occupied(mut new) => {
                    let kept = earlier::keep(out, new.get_mut(), old, made);
                    files.extend(kept.files);
                    removed.extend(kept.removed);
                }
                btree_map::Entry::Vacant(place) => {
                    let there = earlier::still_there(out, &mut old);
                    if !there.is_empty() {
                        files.extend(there);
                        place.insert(old);
                    }
                }
            }
        }
        let kept = earlier::keep_families(out, old.families, old.beside, made, &removed);
        files.extend(kept.files);
        families.extend(kept.packages);
        family_files.extend(kept.beside);
        removed.extend(kept.removed);
        for Package { file: File { file, .. }, .. } in removed {
            output.message("package-removed", &json!({ "file": shown(given.join(&file)) }));
            output.say(&format!("removed {file}, which is out of date"));
        }
    }
    for bill in &made.bills {
        let target = bill.target.as_ref().map(ToString::to_string);
        let (packages, beside) = match target {
            None => (&families, &mut family_files),
            Some(target) => match entries.get_mut(&target) {
                Some(entry) => (&entry.packages, &mut entry.beside),
                None => continue,
            },
        };
        let written = bills::write(out, bill, packages)?;
        beside.push(describe(written.file_name.clone(), &written));
        files.push(written);
    }
    // The same in one run as in several.
    for entry in entries.values_mut() {
        sort(&mut entry.packages, &mut entry.beside);
    }
    sort(&mut families, &mut family_files);
    let manifest = Manifest {
        format: FORMAT,
        generator: concat!("gfxpack ", env!("CARGO_PKG_VERSION")).to_owned(),
        complete: entries.values().all(|entry| entry.missing.is_empty()),
        targets: entries.into_values().collect(),
        families,
        beside: family_files,
    };
    let mut text = serde_json::to_string_pretty(&manifest)?;
    text.push('\n');
    let path = out.join(FILE_NAME);
    replace(&path, text.as_bytes()).map_err(fail::io("write", &path))?;
    files.push(sums::digest_file(&path)?);
    let sums = sums::write_sha256sums(out, &files)?;
    let path = out.join(format!("{}.asc", sums::FILE_NAME));
    match signer {
        Some(signer) => {
            let signature = signer.armoured_file(&sums.path)?;
            replace(&path, &signature).map_err(fail::io("write", &path))
        }
        // An old one would be of other sums.
        None => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(fail::io("remove", &path)(error))
            }
            _ => Ok(()),
        },
    }
}

fn entry(
    out: &Path,
    kdb: &MadeKdb,
    made: &Made,
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
    Ok(Entry {
        target: kdb.target.clone(),
        gfx: kdb.target.id().processor().to_owned(),
        kernels: kdb.kernels,
        origin: kdb.origin.clone(),
        kdb: describe(path.display().to_string(), &written),
        packages: listed(out, made, Some(&kdb.target), files),
        beside: signatures(out, made, Some(&kdb.target), files),
        tuning: made
            .tuning
            .iter()
            .filter(|(target, _)| target.as_ref() == Some(&kdb.target))
            .map(|(_, written)| describe(written.file_name.clone(), written))
            .collect(),
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

fn sort(packages: &mut [Package], beside: &mut [File]) {
    packages.sort_by(|a, b| (&a.format, &a.file.file).cmp(&(&b.format, &b.file.file)));
    beside.sort_by(|a, b| a.file.cmp(&b.file));
}

/// A name from a manifest that stays within its directory.
fn within(out: &Path, name: &str) -> Option<PathBuf> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    (!name.is_empty() && Path::new(name).components().all(plain)).then(|| out.join(name))
}

/// A file of a manifest, if it has the size it had.
fn lies_there(out: &Path, file: &File) -> Option<Written> {
    let path = within(out, &file.file)?;
    (path.metadata().ok()?.len() == file.size).then(|| Written {
        file_name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        path,
        size: file.size,
        sha256: file.sha256.clone(),
    })
}

/// Writes a file whole or not at all; to a device or a pipe as to any other.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match Destination::of(path)? {
        Destination::File(path) => gfxpack_compile::write_atomic(&path, &[bytes]),
        Destination::Stream(mut stream) => stream.write_all(bytes),
    }
}
