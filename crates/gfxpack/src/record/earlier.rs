//! What stays of an earlier run in a directory of packages: packages of a kdb
//! that is the same still, in formats that were not made anew.

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_package::Written;

use super::{Entry, File, Package, lies_there, within};
use crate::writers::Made;

/// What became of the files of an earlier run.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) packages: Vec<Package>,
    /// Bills of material and signatures.
    pub(super) beside: Vec<File>,
    /// All of those, as they lie there.
    pub(super) files: Vec<Written>,
    /// The names of packages that are gone.
    pub(super) removed: BTreeSet<String>,
}

/// Takes over into the `new` entry of a target what holds of the `old` one.
pub(super) fn keep(out: &Path, new: &mut Entry, old: Entry, made: &Made) -> Kept {
    let formats: BTreeSet<&str> =
        new.packages.iter().map(|package| package.format.as_str()).collect();
    let same_kdb = new.kdb.sha256 == old.kdb.sha256;
    let stays = |package: &Package| same_kdb && !formats.contains(package.format.as_str());
    let mut kept = parted(out, old.packages, old.beside, made, &stays);
    if new.packages.is_empty() && !kept.packages.is_empty() {
        new.tuning = old.tuning;
    }
    new.packages.append(&mut kept.packages);
    new.packages.sort_by(|a, b| (&a.format, &a.file.file).cmp(&(&b.format, &b.file.file)));
    new.beside.append(&mut kept.beside);
    kept
}

/// Likewise for the packages of families, which are for certain packages of
/// their targets: `changed` says whether some of those are gone.
pub(super) fn keep_families(
    out: &Path,
    packages: Vec<Package>,
    beside: Vec<File>,
    made: &Made,
    changed: bool,
) -> Kept {
    let formats: BTreeSet<&str> = made.packages.iter().map(|package| package.format).collect();
    let stays = |package: &Package| !changed && !formats.contains(package.format.as_str());
    parted(out, packages, beside, made, &stays)
}

/// Parts what stays from what goes, and removes that.
fn parted(
    out: &Path,
    packages: Vec<Package>,
    beside: Vec<File>,
    made: &Made,
    stays: &dyn Fn(&Package) -> bool,
) -> Kept {
    let mut kept = Kept::default();
    for package in packages {
        match lies_there(out, &package.file).filter(|_| stays(&package)) {
            Some(written) => {
                kept.files.push(written);
                kept.packages.push(package);
            }
            None => {
                if remove(out, &package.file, made) {
                    kept.removed.insert(package.file.file);
                }
            }
        }
    }
    for file in beside {
        // A signature is of one package; a bill of material is of all formats,
        // and made anew with any of them.
        let of_kept = match file.file.strip_suffix(".asc") {
            Some(package) => kept.packages.iter().any(|kept| kept.file.file == package),
            None => !kept.packages.is_empty() && !is_made(&file, made),
        };
        match lies_there(out, &file).filter(|_| of_kept) {
            Some(written) => {
                kept.files.push(written);
                kept.beside.push(file);
            }
            None => {
                remove(out, &file, made);
            }
        }
    }
    kept
}

/// Whether a file of that name was written by this run.
fn is_made(file: &File, made: &Made) -> bool {
    let packages = made.packages.iter().map(|package| &package.written);
    let mut all = packages.chain(made.beside.iter().map(|(_, written)| written));
    all.any(|new| new.file_name == file.file)
}

/// Whether there was something to remove.
fn remove(out: &Path, file: &File, made: &Made) -> bool {
    let path = within(out, &file.file).filter(|_| !is_made(file, made));
    path.is_some_and(|path| std::fs::remove_file(path).is_ok())
}
