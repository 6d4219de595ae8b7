//! Writes a package spec as a tarball that installs with `tar -C / -xf`.

use std::path::Path;

use gfxpack_model::package::PackageSpec;

use crate::compress::Compression;
use crate::contents::Contents;
use crate::output::Output;
use crate::tarball::Tarball;
use crate::{Error, Written};

/// The name that [`write()`] gives the file: `<name>-<version>-<revision>.tar.gz`,
/// with the ending of the compression.
fn file_name(spec: &PackageSpec, compression: Compression) -> String {
    let PackageSpec { name, version, revision, .. } = spec;
    format!("{name}-{version}-{revision}.tar.{}", compression.extension())
}

/// Writes `spec` as a packed tarball in GNU format into the existing directory
/// `dir`.
///
/// Names are the absolute paths without their first slash; the copyright is
/// added below `doc`. Directories have no entries of their own: unpacking one would replace a link such as `/opt/rocm` and change mode
/// and time of `/usr`.
///
/// # Errors
/// Every kind of [`Error`] but those of .deb, rpm and checksums.
pub(crate) fn write(
    spec: &PackageSpec,
    dir: &Path,
    compression: Compression,
    doc: &str,
    threads: usize,
) -> Result<Written, Error> {
    let mut output = Output::create(dir, &file_name(spec, compression))?;
    let path = output.path();
    let failed = |e| Error::write(&path, e);
    let mut contents = Contents::from_spec(spec)?;
    let copyright = format!("{doc}/{}/copyright", spec.name);
    contents.add(&copyright, spec.copyright.as_bytes())?;

    let encoder = compression.encoder(&mut output, threads).map_err(failed)?;
    let mut tarball = Tarball::new(encoder, &path, spec.source_date_epoch);
    for (install_path, item) in contents.iter() {
        tarball.file(&install_path[1..], item, None)?;
    }
    tarball.finish()?.finish().map_err(failed)?;
    output.commit()
}
