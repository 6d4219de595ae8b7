//! The JSON manifest and the checksums beside the outputs: what was made from
//! what, by which compiler, and what is missing.

mod earlier;
mod manifest;

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::path::{Path, PathBuf};

use gfxpack_model::Target;
use gfxpack_package::signing::Signer;
use gfxpack_package::{Written, sums};

use crate::build::MadeKdb;
use crate::destination::replace;
use crate::error::{self, Result};
use crate::ledger::{self, Ledger};
use crate::outputs::{FileRecords, Outputs};
use crate::progress::{Event, Progress};
use crate::write_packages::{BillOfMaterial, MadePackages};
use manifest::Manifest;
pub use manifest::{File, KdbEntry, Package};

/// Version of the manifest's format.
const FORMAT: u32 = 1;
/// The program's name and version.
pub(crate) const GENERATOR: &str = concat!("gfxpack ", env!("CARGO_PKG_VERSION"));
const FILE_NAME: &str = "manifest.json";

/// A file of the directory; adds it to `files`, which get checksums.
fn listed(out: &Path, written: &Written, files: &mut Vec<Written>) -> File {
    files.push(Written { path: out.join(&written.file_name), ..written.clone() });
    File::new(written)
}

/// The packages of one target, or of families if there is none, and their
/// signatures.
fn packages(
    out: &Path,
    made: &MadePackages,
    target: Option<&Target>,
    files: &mut Vec<Written>,
) -> (Vec<Package>, Vec<File>) {
    let (mut packages, mut signatures) = (Vec::new(), Vec::new());
    for package in made.packages.iter().filter(|package| package.target.as_ref() == target) {
        listed(out, &package.written, files);
        packages.push(package.package.clone());
        signatures.extend(package.signature.iter().map(|written| listed(out, written, files)));
    }
    (packages, signatures)
}

fn read(dir: &Path) -> Option<Manifest> {
    let text = std::fs::read(dir.join(FILE_NAME)).ok()?;
    let manifest: Manifest = serde_json::from_slice(&text).ok()?;
    (manifest.format == FORMAT).then_some(manifest)
}

/// The entry for a kdb in the manifest of its build, if the kdb is still in its
/// place and unchanged.
pub fn of_kdb(kdb: &Path, sha256: &str) -> Result<Option<KdbEntry>> {
    let absolute = std::path::absolute(kdb).map_err(error::io("find", kdb))?;
    let manifests = absolute.ancestors().skip(1).take(2).filter_map(read);
    let mut entries = manifests.flat_map(|manifest| manifest.targets);
    Ok(entries.find(|entry| entry.kdb.sha256 == sha256))
}

/// Writes `manifest.json`, `kernels.jsonl` and `SHA256SUMS` beside the outputs; concurrent runs wait for
/// each other. Outputs of earlier runs stay listed if they are still valid
/// ([`earlier`]), and are removed with a note if not. Bills of material are
/// written here too, since they name packages of earlier runs. If there is a
/// signer, it signs the checksums. `ledger` has every wanted kernel; it is `None` if the kdbs were
/// there before.
pub(crate) fn write(
    kdbs: &[MadeKdb],
    made: &MadePackages,
    ledger: Option<&Ledger<'_>>,
    signer: Option<&Signer>,
    outputs: &Outputs<'_>,
    progress: &dyn Progress,
) -> Result<()> {
    let given = &*outputs.given;
    let out = &std::fs::canonicalize(given).map_err(error::io("find", given))?;
    let directory = std::fs::File::open(out).map_err(error::io("open", out))?;
    // On file systems without locks, only one run at a time is supported.
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive).ok();
    let mut listing = Listing::of_run(out, kdbs, made, &outputs.records)?;
    if let Some(old) = read(out) {
        for Package { file: File { file, .. }, .. } in listing.add_earlier(out, old, made) {
            let replaced = !made.packages.is_empty();
            progress.event(Event::PackageRemoved { path: &given.join(&file), replaced });
        }
    }
    listing.add_bills(out, &made.bills, outputs)?;
    let existing = out.join(ledger::FILE_NAME);
    listing.files.extend(match ledger {
        Some(ledger) => Some(ledger.write(out, &listing.earlier(ledger), outputs)?),
        None => existing.is_file().then(|| sums::digest_file(&existing)).transpose()?,
    });
    let (manifest, mut files) = listing.into_manifest();
    let mut text = serde_json::to_string_pretty(&manifest).map_err(error::json)?;
    text.push('\n');
    let path = out.join(FILE_NAME);
    replace(&path, text)?;
    files.push(sums::digest_file(&path)?);
    let sums = sums::write_sha256sums(out, &files)?;
    outputs.records.digests.save();
    sign_sums(out, &sums, signer)
}

/// Signs the checksums, or removes an old signature.
fn sign_sums(out: &Path, sums: &Written, signer: Option<&Signer>) -> Result<()> {
    let path = out.join(format!("{}.asc", sums::FILE_NAME));
    match signer {
        Some(signer) => {
            let signature = signer.armoured_file(&sums.path)?;
            replace(&path, &signature)
        }
        None => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error::io("remove", &path)(error))
            }
            _ => Ok(()),
        },
    }
}

/// Directory and name of a kdb's file, which identify an entry of the manifest.
/// Different spellings of a target may share one.
type KdbLocation = (&'static str, String);

fn location(entry: &KdbEntry) -> KdbLocation {
    let format = entry.inputs.library().consumer.properties().format;
    (format.output_dir(), format.file_name(&entry.target))
}

/// The contents of the new manifest.
#[derive(Default)]
struct Listing {
    /// All files that get checksums.
    files: Vec<Written>,
    entries: BTreeMap<KdbLocation, KdbEntry>,
    /// By target of this run: its place.
    locations: BTreeMap<String, KdbLocation>,
    families: Vec<Package>,
    /// Signatures of the families' packages, and their bills of material.
    beside: Vec<File>,
}

impl Listing {
    /// Lists the outputs of this run, without bills of material.
    fn of_run(
        out: &Path,
        kdbs: &[MadeKdb],
        made: &MadePackages,
        records: &FileRecords<'_>,
    ) -> Result<Self> {
        let mut listing = Self::default();
        for kdb in kdbs {
            let entry = entry(out, kdb, made, records, &mut listing.files)?;
            let location = location(&entry);
            listing.locations.insert(kdb.target.to_string(), location.clone());
            listing.entries.insert(location, entry);
        }
        (listing.families, listing.beside) = packages(out, made, None, &mut listing.files);
        Ok(listing)
    }

    /// Adds the outputs of an earlier run that are still valid, and returns the
    /// packages that are not.
    fn add_earlier(&mut self, out: &Path, old: Manifest, made: &MadePackages) -> Vec<Package> {
        let mut removed = Vec::new();
        for mut old in old.targets {
            match self.entries.entry(location(&old)) {
                btree_map::Entry::Occupied(mut new) => {
                    let kept = earlier::keep(out, new.get_mut(), old, made);
                    self.files.extend(kept.files);
                    removed.extend(kept.removed);
                }
                btree_map::Entry::Vacant(location) => {
                    let there = earlier::existing_files(out, &mut old);
                    if !there.is_empty() {
                        self.files.extend(there);
                        location.insert(old);
                    }
                }
            }
        }
        let kept = earlier::keep_families(out, old.families, old.beside, made, &removed);
        self.files.extend(kept.files);
        self.families.extend(kept.packages);
        self.beside.extend(kept.beside);
        removed.extend(kept.removed);
        removed
    }

    /// Writes and adds the bills of material for this run's packages.
    fn add_bills(
        &mut self,
        out: &Path,
        bills: &[BillOfMaterial],
        outputs: &Outputs<'_>,
    ) -> Result<()> {
        for bill in bills {
            let (packages, beside) = match &bill.target {
                None => (&self.families, &mut self.beside),
                Some(target) => {
                    let location = self.locations.get(&target.to_string());
                    match location.and_then(|location| self.entries.get_mut(location)) {
                        Some(entry) => (&entry.packages, &mut entry.beside),
                        None => continue,
                    }
                }
            };
            let written = manifest::write_bill(out, bill, packages, outputs)?;
            beside.push(File::new(&written));
            self.files.push(written);
        }
        Ok(())
    }

    /// The targets of earlier runs.
    fn earlier(&self, ledger: &Ledger<'_>) -> BTreeSet<String> {
        let wanted = |target: &Target| {
            self.locations.contains_key(&target.to_string())
                || ledger.absences.targets().any(|own| own == target)
        };
        let targets = self.entries.values().map(|entry| &entry.target);
        targets.filter(|target| !wanted(target)).map(Target::to_string).collect()
    }

    /// The manifest and all files, in an order that is the same for one run as
    /// for several.
    fn into_manifest(mut self) -> (Manifest, Vec<Written>) {
        for entry in self.entries.values_mut() {
            sort(&mut entry.packages, &mut entry.beside);
        }
        sort(&mut self.families, &mut self.beside);
        let mut targets: Vec<KdbEntry> = self.entries.into_values().collect();
        targets.sort_by_key(|entry| entry.target.to_string());
        let manifest = Manifest {
            format: FORMAT,
            generator: GENERATOR.to_owned(),
            complete: targets.iter().all(|entry| ledger::missing(&entry.absent) == 0),
            targets,
            families: self.families,
            beside: self.beside,
        };
        (manifest, self.files)
    }
}

fn entry(
    out: &Path,
    kdb: &MadeKdb,
    made: &MadePackages,
    records: &FileRecords<'_>,
    files: &mut Vec<Written>,
) -> Result<KdbEntry> {
    let mut path = std::fs::canonicalize(&kdb.path).map_err(error::io("find", &kdb.path))?;
    let mut written = records.described(&path).map_err(error::io("read", &path))?;
    // A kdb that was only packaged may be anywhere, so only its file name is
    // recorded.
    match path.strip_prefix(out).map(Path::to_owned) {
        Ok(relative) => {
            written.path = out.join(&relative);
            files.push(written.clone());
            path = relative;
        }
        Err(_) => path = PathBuf::from(written.file_name.clone()),
    }
    let (packages, beside) = packages(out, made, Some(&kdb.target), files);
    let tuning = made.tuning.iter().filter(|(target, _)| *target == kdb.target);
    Ok(KdbEntry {
        target: kdb.target.clone(),
        gfx: kdb.target.id().processor().to_owned(),
        kernels: kdb.kernels,
        inputs: kdb.inputs.clone(),
        kdb: File { file: path.display().to_string(), ..File::new(&written) },
        packages,
        beside,
        tuning: tuning.map(|(_, written)| File::new(written)).collect(),
        absent: kdb.absent.clone(),
    })
}

fn sort(packages: &mut [Package], beside: &mut [File]) {
    packages.sort_by(|a, b| (&a.format, &a.file.file).cmp(&(&b.format, &b.file.file)));
    beside.sort_by(|a, b| a.file.cmp(&b.file));
}
