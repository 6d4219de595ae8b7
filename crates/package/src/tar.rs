//! Writes a package spec as a tarball that installs with `tar -C / -xf`.

use std::path::Path;

use gfxpack_model::package::PackageSpec;

use crate::check::{self, Format};
use crate::compress::Compression;
use crate::contents::Contents;
use crate::output::Output;
use crate::tarball::Tarball;
use crate::{Error, Written};

/// How a tarball is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TarOptions {
    /// Compression; gzip level 6 by default.
    pub compression: Compression,
    /// Threads that may compress; no effect on the bytes. By default as many
    /// as the machine has.
    pub threads: usize,
    /// The directory below which the copyright is added; [`DOC`] by default.
    pub doc: &'static str,
}

/// Where packages have their copyright on Linux.
pub const DOC: &str = "/usr/share/doc";

impl Default for TarOptions {
    fn default() -> Self {
        Self {
            compression: Compression::Gz { level: 6 },
            threads: crate::threads::default_threads(),
            doc: DOC,
        }
    }
}

/// The name that [`write()`] gives the file: `<name>-<version>-<revision>.tar.gz`,
/// with the ending of the compression.
#[must_use]
pub fn file_name(spec: &PackageSpec, options: &TarOptions) -> String {
    let PackageSpec { name, version, revision, .. } = spec;
    format!("{name}-{version}-{revision}.tar.{}", options.compression.extension())
}

/// Whether [`write()`] would take the spec and the options, without writing.
///
/// # Errors
/// The first rule of the format that is broken, as its own kind of error.
pub fn check(spec: &PackageSpec, options: &TarOptions) -> Result<(), Error> {
    check::spec(spec, Format::Tar)?;
    options.compression.check()
}

/// Writes `spec` as a packed tarball in GNU format into the existing directory
/// `dir`.
///
/// Names are the absolute paths without their first slash; the copyright is
/// added below the directory for it, as `usr/share/doc/<name>`. Directories have no entries of their
/// own: unpacking one would replace a link such as `/opt/rocm` and change mode
/// and time of `/usr`.
///
/// # Errors
/// Every kind of [`Error`] but those of .deb, rpm and checksums.
pub fn write(spec: &PackageSpec, dir: &Path, options: &TarOptions) -> Result<Written, Error> {
    check(spec, options)?;
    let mut output = Output::create(dir, &file_name(spec, options))?;
    let path = output.path();
    let failed = |e| Error::write(&path, e);
    let mut contents = Contents::from_spec(spec)?;
    let copyright = format!("{}/{}/copyright", options.doc, spec.name);
    contents.add(&copyright, spec.copyright.as_bytes())?;

    let encoder = options.compression.encoder(&mut output, options.threads).map_err(failed)?;
    let mut tarball = Tarball::new(encoder, &path, spec.source_date_epoch);
    for (install_path, item) in contents.iter() {
        tarball.file(&install_path[1..], item, None)?;
    }
    tarball.finish()?.finish().map_err(failed)?;
    output.commit()
}
