//! Writes a package spec in any format.

use std::io;
use std::path::Path;

use gfxpack_model::Result;
use gfxpack_model::package::PackageSpec;

use crate::compress::finish;
use crate::contents::Contents;
use crate::error::writing;
use crate::format::Format;
use crate::output::Output;
use crate::{Sign, Written, arch, check, deb, oci, rpm, tarball, wheel};

impl Format {
    /// The name that [`Format::write`] gives the file.
    ///
    /// # Errors
    /// If a wheel can have no such version.
    pub fn file_name(self, spec: &PackageSpec) -> Result<String> {
        let PackageSpec { name, version, revision, .. } = spec;
        let stem = format!("{name}-{version}-{revision}");
        Ok(match self {
            Self::Deb { .. } => format!("{name}_{version}-{revision}_all.deb"),
            Self::Rpm { .. } => format!("{stem}.noarch.rpm"),
            Self::Tar { compression } => format!("{stem}.tar.{}", compression.extension()),
            Self::Wheel => wheel::file_name(spec)?,
            Self::Oci => format!("{stem}.oci.tar"),
            // For any processor, since the contents are for GPUs.
            Self::Arch => format!("{stem}-any.pkg.tar.zst"),
        })
    }

    /// Checks that [`Format::write`] would accept the spec, without writing.
    ///
    /// # Errors
    /// The first rule of the format that is broken, as its own kind of error.
    pub fn check(self, spec: &PackageSpec) -> Result {
        check::spec(spec, self)?;
        self.compression().check()?;
        self.file_name(spec).map(drop)
    }

    /// Writes `spec` with its copyright into the existing directory `dir`. Up to
    /// `threads` threads compress, which has no effect on the bytes. Only an .rpm
    /// contains a signature, which `signer` makes if given.
    ///
    /// # Errors
    /// In that case no new file is left, and an older one is unchanged.
    pub fn write(
        self,
        spec: &PackageSpec,
        dir: &Path,
        threads: usize,
        signer: Option<&dyn Sign>,
    ) -> Result<Written> {
        self.check(spec)?;
        let mut output = Output::create(dir, &self.file_name(spec)?)?;
        let written = self.write_to(&mut output, spec, threads, signer);
        written.map_err(writing(&output.path()))?;
        output.commit()
    }

    fn write_to(
        self,
        output: &mut Output,
        spec: &PackageSpec,
        threads: usize,
        signer: Option<&dyn Sign>,
    ) -> io::Result<()> {
        let mut contents = Contents::from_spec(spec)?;
        let compression = self.compression();
        let docs = match self {
            Self::Rpm { .. } | Self::Arch => "/usr/share/licenses",
            Self::Deb { .. } | Self::Tar { .. } | Self::Oci => "/usr/share/doc",
            // A wheel has its own place for the copyright.
            Self::Wheel => return wheel::write(spec, &contents, output),
        };
        let copyright = format!("{docs}/{}/copyright", spec.name);
        contents.add(&copyright, spec.copyright.as_bytes())?;
        match self {
            Self::Deb { .. } => deb::write(spec, contents, output, compression, threads),
            Self::Rpm { .. } => {
                rpm::write(spec, &contents, output, &copyright, compression, threads, signer)
            }
            Self::Oci => oci::write(spec, &contents, output, compression, threads),
            Self::Arch => arch::write(spec, &contents, output, compression, threads),
            Self::Tar { .. } | Self::Wheel => {
                let out = compression.encoder(output, threads)?;
                finish(tarball::files(out, spec, &contents)?).map(drop)
            }
        }
    }
}
