//! Bills of material: which archives in a directory hold a package, whichever
//! run made them.

use std::path::Path;

use gfxpack_package::{Written, sbom};

use super::manifest::{File, Package, lies_there};
use crate::error::Result;
use crate::outputs::Outputs;
use crate::write_packages::{Bill, bill_checksums};

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
        Ok(Some(written)) => File::new(&written),
        _ => bill,
    }
}

/// Writes the bill with those of the `packages` that it is of, unless it lies
/// there already.
pub(super) fn write(
    out: &Path,
    bill: &Bill,
    packages: &[Package],
    outputs: &Outputs<'_>,
) -> Result<Written> {
    let name = sbom::file_name(&bill.spec);
    let own = packages.iter().filter(|package| file_name(package) == name);
    let mut archives: Vec<Written> =
        own.filter_map(|package| lies_there(out, &package.file)).collect();
    // The same in one run as in several.
    archives.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    let Bill { spec, making, contents, .. } = bill;
    let decides = format!("{spec:?} {contents:?} {making:?}");
    let archived = archives.iter().flat_map(|archive| [&archive.file_name, &archive.sha256]);
    let fields = std::iter::once(&decides).chain(archived).map(String::as_bytes);
    let recipe = outputs.recipe(&format!("spdx {name}"), fields);
    if let Some(written) = outputs.unchanged(&recipe) {
        return Ok(Written { path: out.join(&name), ..written });
    }
    let made;
    let checksums = match &bill.checksums {
        Some(checksums) => checksums,
        None => {
            made = bill_checksums(spec, contents)?;
            &made
        }
    };
    let written = sbom::write(spec, checksums, &archives, making, out)?;
    outputs.remember(&recipe, &written);
    Ok(written)
}
