//! Bills of material: which archives in a directory hold a package, whichever
//! run made them.

use std::path::Path;

use gfxpack_package::{Written, sbom};

use super::manifest::{File, Package, describe, lies_there};
use crate::writers::Bill;

/// What the bill of a package is called, as [`sbom::file_name`] has it.
pub(super) fn file_name(package: &Package) -> String {
    format!("{}-{}.spdx.json", package.name, package.version)
}

/// A bill of an earlier run, without the archives that are gone by now: of
/// those it is made for, the `packages` that stay.
pub(super) fn trimmed(out: &Path, bill: File, packages: &[Package]) -> File {
    let own = packages.iter().filter(|package| file_name(package) == bill.file);
    let there: Vec<&str> = own.map(|package| package.file.file.as_str()).collect();
    // Where that is impossible, it says more than there is.
    match sbom::retain(out, &bill.file, &there) {
        Ok(Some(written)) => describe(bill.file, &written),
        _ => bill,
    }
}

/// Writes the bill with those of the `packages` that it is of.
pub(super) fn write(
    out: &Path,
    bill: &Bill,
    packages: &[Package],
) -> crate::error::Result<Written> {
    let name = sbom::file_name(&bill.spec);
    let own = packages.iter().filter(|package| file_name(package) == name);
    let mut archives: Vec<Written> =
        own.filter_map(|package| lies_there(out, &package.file)).collect();
    // The same in one run as in several.
    archives.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    Ok(sbom::write(&bill.spec, &archives, &bill.making, out)?)
}
