//! Writes a package spec in any format.

use std::path::Path;

use gfxpack_model::package::PackageSpec;

use crate::format::Format;
use crate::{Error, Sign, Written, arch, check, deb, oci, rpm, tar, wheel};

impl Format {
    /// Whether [`Format::write`] would take the spec, without writing.
    ///
    /// # Errors
    /// The first rule of the format that is broken, as its own kind of error.
    pub fn check(self, spec: &PackageSpec) -> Result<(), Error> {
        check::spec(spec, self)?;
        self.compression().check()?;
        if self == Self::Wheel { wheel::version(spec).map(drop) } else { Ok(()) }
    }

    /// Writes `spec` into the existing directory `dir`. Up to `threads` threads
    /// compress, which has no effect on the bytes. Only an .rpm has a place for
    /// a signature, which is made by `signer` where there is one.
    ///
    /// # Errors
    /// [`Error`]. No new file is left then, and an older one is as it was.
    pub fn write(
        self,
        spec: &PackageSpec,
        dir: &Path,
        threads: usize,
        signer: Option<&dyn Sign>,
    ) -> Result<Written, Error> {
        self.check(spec)?;
        let compression = self.compression();
        match self {
            Self::Deb { md5sums, .. } => deb::write(spec, dir, compression, md5sums, threads),
            Self::Rpm { .. } => rpm::write(spec, dir, compression, threads, signer),
            Self::Tar { doc, .. } => tar::write(spec, dir, compression, doc, threads),
            Self::Wheel => wheel::write(spec, dir),
            Self::Oci => oci::write(spec, dir, compression, threads),
            Self::Arch => arch::write(spec, dir, compression, threads),
        }
    }
}
