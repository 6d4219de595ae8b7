//! What stays of an earlier run in a directory of packages: packages of a kdb
//! that is the same still, in formats that were not made anew.

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_package::{Written, sbom};

use super::bills;
use super::manifest::{File, KdbEntry, Package, lies_there, within};
use crate::write_packages::MadePackages;

/// What became of the files of an earlier run.
#[derive(Default)]
pub(super) struct EarlierFiles {
    pub(super) packages: Vec<Package>,
    /// Bills of material and signatures.
    pub(super) beside: Vec<File>,
    /// All of those, as they lie there.
    pub(super) files: Vec<Written>,
    /// Packages that are gone.
    pub(super) removed: Vec<Package>,
}

/// Takes over into the `new` entry of a target what holds of the `old` one:
/// packages of the same kdb that install the same as the new ones do.
pub(super) fn keep(
    out: &Path,
    new: &mut KdbEntry,
    old: KdbEntry,
    made: &MadePackages,
) -> EarlierFiles {
    let formats: BTreeSet<&str> =
        new.packages.iter().map(|package| package.format.as_str()).collect();
    let same = new.kdb.sha256 == old.kdb.sha256
        && (new.packages.is_empty() || digests(&new.tuning) == digests(&old.tuning));
    let stays = |package: &Package| {
        // Where nothing is said of it, it was made before that was written.
        let elsewhere = |new: &Package| {
            // A wheel has its own place beside all others.
            new.name == package.name
                && (new.format == "wheel") == (package.format == "wheel")
                && !package.installs.is_empty()
                && new.installs != package.installs
        };
        same && !formats.contains(package.format.as_str()) && !new.packages.iter().any(elsewhere)
    };
    let mut kept = parted(out, old.packages, old.beside, made, &stays);
    if new.packages.is_empty() && !kept.packages.is_empty() {
        new.tuning = old.tuning;
    }
    new.packages.append(&mut kept.packages);
    new.beside.append(&mut kept.beside);
    kept
}

/// Databases by what decides them.
fn digests(files: &[File]) -> BTreeSet<(&str, &str)> {
    files.iter().map(|file| (file.file.as_str(), file.sha256.as_str())).collect()
}

/// Likewise for the packages of families, which depend on certain packages of
/// their targets: those that are `removed` by now take them along.
pub(super) fn keep_families(
    out: &Path,
    packages: Vec<Package>,
    beside: Vec<File>,
    made: &MadePackages,
    removed: &[Package],
) -> EarlierFiles {
    let stays = |package: &Package| {
        let format = package.format.as_str();
        let mut new = made.packages.iter().filter(|new| new.target.is_none());
        let gone = |gone: &Package| gone.format == format && package.depends.contains(&gone.name);
        !new.any(|new| new.format == format && new.name == package.name)
            && !removed.iter().any(gone)
    };
    parted(out, packages, beside, made, &stays)
}

/// The files of a target that no package was made for, as far as they lie
/// there with the size they had; the entry forgets the others.
pub(super) fn still_there(out: &Path, entry: &mut KdbEntry) -> Vec<Written> {
    let mut files = Vec::new();
    let mut there = |file: &File| {
        let written = lies_there(out, file);
        files.extend(written.clone());
        written.is_some()
    };
    entry.packages.retain(|package| there(&package.file));
    let beside = std::mem::take(&mut entry.beside).into_iter();
    let beside = beside.filter_map(|file| still_beside(out, file, &entry.packages));
    entry.beside = beside.filter(|file| there(file)).collect();
    if !there(&entry.kdb) {
        // As one that was packaged from elsewhere, it is named alone.
        let name = entry.kdb.file.rsplit('/').next().unwrap_or_default();
        entry.kdb.file = name.to_owned();
    }
    files
}

/// Parts what stays from what goes, and removes that.
fn parted(
    out: &Path,
    packages: Vec<Package>,
    beside: Vec<File>,
    made: &MadePackages,
    stays: &dyn Fn(&Package) -> bool,
) -> EarlierFiles {
    let mut kept = EarlierFiles::default();
    for package in packages {
        match lies_there(out, &package.file).filter(|_| stays(&package)) {
            Some(written) => {
                kept.files.push(written);
                kept.packages.push(package);
            }
            None => {
                if remove(out, &package.file, made) {
                    kept.removed.push(package);
                }
            }
        }
    }
    // What is made anew is listed as new.
    for file in beside.into_iter().filter(|file| !is_made(file, made)) {
        match still_beside(out, file.clone(), &kept.packages) {
            Some(file) => {
                kept.files.extend(lies_there(out, &file));
                kept.beside.push(file);
            }
            None => {
                remove(out, &file, made);
            }
        }
    }
    kept
}

/// The signature or bill of material, if it is of one of the packages and
/// lies there.
fn still_beside(out: &Path, file: File, packages: &[Package]) -> Option<File> {
    lies_there(out, &file)?;
    match file.file.strip_suffix(".asc") {
        Some(signed) => packages.iter().any(|package| package.file.file == signed).then_some(file),
        None => packages
            .iter()
            .any(|package| bills::file_name(package) == file.file)
            .then(|| bills::trimmed(out, file, packages)),
    }
}

/// Whether a file of that name was written by this run, or will be.
fn is_made(file: &File, made: &MadePackages) -> bool {
    let packages = made.packages.iter().map(|package| &package.written);
    let mut all = packages.chain(made.signatures.iter().map(|(_, written)| written));
    all.any(|new| new.file_name == file.file)
        || made.bills.iter().any(|bill| sbom::file_name(&bill.spec) == file.file)
}

/// Whether there was something to remove.
fn remove(out: &Path, file: &File, made: &MadePackages) -> bool {
    let path = within(out, &file.file).filter(|_| !is_made(file, made));
    path.is_some_and(|path| std::fs::remove_file(path).is_ok())
}
