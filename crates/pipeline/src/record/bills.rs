//! Bills of material. A bill lists all archives of a package in a directory,
//! whichever run made them.

use std::path::Path;

use gfxpack_package::{Written, sbom};

use super::manifest::{File, Package, existing_file};
use crate::error::Result;
use crate::outputs::Outputs;
use crate::write_packages::{BillOfMaterial, bill_checksums};

/// The file name of a package's bill, as [`sbom::file_name`] makes it.
pub(super) fn file_name(package: &Package) -> String {
    format!("{}-{}.spdx.json", package.name, package.version)
}

/// Removes archives that are gone from a bill of an earlier run. `packages` are
/// those that stay.
pub(super) fn trimmed(out: &Path, bill: File, packages: &[Package]) -> File {
    let own = packages.iter().filter(|package| file_name(package) == bill.file);
    let there: Vec<&str> = own.map(|package| package.file.file.as_str()).collect();
    // If that fails, the bill lists archives that do not exist.
    match sbom::retain(out, &bill.file, &there) {
        Ok(Some(written)) => File::new(&written),
        _ => bill,
    }
}

/// Writes the bill for those of the `packages` that it covers, unless it is up to
/// date.
pub(super) fn write(
    out: &Path,
    bill: &BillOfMaterial,
    packages: &[Package],
    outputs: &Outputs<'_>,
) -> Result<Written> {
    let name = sbom::file_name(&bill.spec);
    let own = packages.iter().filter(|package| file_name(package) == name);
    let mut archives: Vec<Written> =
        own.filter_map(|package| existing_file(out, &package.file)).collect();
    // Sorted, so that one run gives the same bill as several.
    archives.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    let BillOfMaterial { spec, making, file_digests, .. } = bill;
    let decides = format!("{spec:?} {file_digests:?} {making:?}");
    let archived = archives.iter().flat_map(|archive| [&archive.file_name, &archive.sha256]);
    let fields = std::iter::once(&decides).chain(archived).map(String::as_bytes);
    let output = outputs.digest_of(&format!("spdx {name}"), fields);
    if let Some(written) = outputs.unchanged(&output) {
        return Ok(Written { path: out.join(&name), ..written });
    }
    let made;
    let checksums = match &bill.checksums {
        Some(checksums) => checksums,
        None => {
            made = bill_checksums(spec, file_digests)?;
            &made
        }
    };
    let written = sbom::write(spec, checksums, &archives, making, out)?;
    outputs.remember(&output, &written);
    Ok(written)
}
