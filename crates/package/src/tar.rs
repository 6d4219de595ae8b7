//! Writes a package spec as a tarball that installs with `tar -C / -xf`.

use std::io;

use gfxpack_model::package::PackageSpec;

use crate::compress::Compression;
use crate::contents::Contents;
use crate::output::Output;
use crate::tarball::Tarball;

/// Writes `spec` as a compressed tarball in GNU format.
///
/// Names are the absolute paths without the first slash. There are no entries for
/// directories: unpacking one would replace a link such as `/opt/rocm`, and
/// change mode and time of `/usr`.
pub(crate) fn write(
    spec: &PackageSpec,
    contents: &Contents<'_>,
    output: &mut Output,
    compression: Compression,
    threads: usize,
) -> io::Result<()> {
    let encoder = compression.encoder(output, threads)?;
    let mut tarball = Tarball::new(encoder, spec.source_date_epoch);
    for (install_path, item) in contents.iter() {
        tarball.file(&install_path[1..], item)?;
    }
    tarball.finish()?.finish()?;
    Ok(())
}
