//! Bills of material: which archives in a directory hold a package, whichever
//! run made them.

use std::path::Path;

use gfxpack_package::{Written, sbom};

use super::{Package, lies_there};
use crate::writers::Bill;

/// What the bill of a package is called, as [`sbom::file_name`] has it.
pub(super) fn file_name(package: &Package) -> String {
    format!("{}-{}.spdx.json", package.name, package.version)
}

/// Writes the bill with those of the `packages` that it is of.
pub(super) fn write(out: &Path, bill: &Bill, packages: &[Package]) -> anyhow::Result<Written> {
    let name = sbom::file_name(&bill.spec);
    let own = packages.iter().filter(|package| file_name(package) == name);
    let mut archives: Vec<Written> =
        own.filter_map(|package| lies_there(out, &package.file)).collect();
    // The same in one run as in several.
    archives.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    Ok(sbom::write(&bill.spec, &archives, &bill.making, out)?)
}
