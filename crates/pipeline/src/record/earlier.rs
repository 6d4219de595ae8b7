//! The packages of an earlier run that stay in a directory: those of an unchanged
//! kdb, in formats that were not made again.

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_package::{Written, sbom};

use super::manifest::{File, KdbEntry, Package, bill_name, existing_file, trimmed_bill, within};
use crate::write_packages::MadePackages;

/// The files of an earlier run: which stay, and which were removed.
#[derive(Default)]
pub(super) struct EarlierFiles {
    pub(super) packages: Vec<Package>,
    /// Bills of material and signatures.
    pub(super) beside: Vec<File>,
    /// All files of these packages, and those beside them.
    pub(super) files: Vec<Written>,
    pub(super) removed: Vec<Package>,
}

/// Moves what is still valid from the `old` entry of a target to the `new` one:
/// packages of the same kdb that install the same files as the new ones.
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
        let elsewhere = |new: &Package| {
            // A wheel installs into a place of its own.
            new.name == package.name
                && (new.format == "wheel") == (package.format == "wheel")
                && new.installs != package.installs
        };
        same && !formats.contains(package.format.as_str()) && !new.packages.iter().any(elsewhere)
    };
    let mut kept = separate(out, old.packages, old.beside, made, &stays);
    if new.packages.is_empty() && !kept.packages.is_empty() {
        new.tuning = old.tuning;
    }
    new.packages.append(&mut kept.packages);
    new.beside.append(&mut kept.beside);
    kept
}

/// Names and digests of databases.
fn digests(files: &[File]) -> BTreeSet<(&str, &str)> {
    files.iter().map(|file| (file.file.as_str(), file.sha256.as_str())).collect()
}

/// Like [`keep`], for the packages of families. They depend on packages of their
/// targets, so they go with those that are `removed`.
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
        !new.any(|new| new.package.format == format && new.package.name == package.name)
            && !removed.iter().any(gone)
    };
    separate(out, packages, beside, made, &stays)
}

/// The files of a target that this run made no package for, as far as they exist
/// with the recorded size. The others are removed from the entry.
pub(super) fn existing_files(out: &Path, entry: &mut KdbEntry) -> Vec<Written> {
    let mut files = Vec::new();
    let mut exists = |file: &File| {
        let written = existing_file(out, file);
        files.extend(written.clone());
        written.is_some()
    };
    entry.packages.retain(|package| exists(&package.file));
    let beside = std::mem::take(&mut entry.beside).into_iter();
    let beside = beside.filter_map(|file| existing_companion(out, file, &entry.packages));
    entry.beside = beside.filter(|file| exists(file)).collect();
    if !exists(&entry.kdb) {
        // Like a kdb that was packaged from elsewhere, it is listed by its name
        // only.
        let name = entry.kdb.file.rsplit('/').next().unwrap_or_default();
        entry.kdb.file = name.to_owned();
    }
    files
}

/// Separates what stays from the rest, and removes the rest.
fn separate(
    out: &Path,
    packages: Vec<Package>,
    beside: Vec<File>,
    made: &MadePackages,
    stays: &dyn Fn(&Package) -> bool,
) -> EarlierFiles {
    let mut kept = EarlierFiles::default();
    for package in packages {
        match existing_file(out, &package.file).filter(|_| stays(&package)) {
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
    // New files are listed with this run's.
    for file in beside.into_iter().filter(|file| !is_made(file, made)) {
        match existing_companion(out, file.clone(), &kept.packages) {
            Some(file) => {
                kept.files.extend(existing_file(out, &file));
                kept.beside.push(file);
            }
            None => {
                remove(out, &file, made);
            }
        }
    }
    kept
}

/// The signature or bill of material, if it belongs to one of the packages and
/// still exists.
fn existing_companion(out: &Path, file: File, packages: &[Package]) -> Option<File> {
    existing_file(out, &file)?;
    match file.file.strip_suffix(".asc") {
        Some(signed) => packages.iter().any(|package| package.file.file == signed).then_some(file),
        None => packages
            .iter()
            .any(|package| bill_name(package) == file.file)
            .then(|| trimmed_bill(out, file, packages)),
    }
}

/// Whether this run has written a file with this name, or will.
fn is_made(file: &File, made: &MadePackages) -> bool {
    let packages = made.packages.iter();
    let mut all =
        packages.flat_map(|package| [&package.written].into_iter().chain(&package.signature));
    all.any(|new| new.file_name == file.file)
        || made.bills.iter().any(|bill| sbom::file_name(&bill.spec) == file.file)
}

/// Removes a file; whether there was one.
fn remove(out: &Path, file: &File, made: &MadePackages) -> bool {
    let path = within(out, &file.file).filter(|_| !is_made(file, made));
    path.is_some_and(|path| std::fs::remove_file(path).is_ok())
}
