//! What maintainers call in recipes of their own.

use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use gfxpack_pipeline::recipes::RPM_KINDS;

#[derive(Debug, Subcommand)]
pub(crate) enum Recipe {
    /// In a Debian source package, before dh_gencontrol: write what each package with kernels says
    /// of them into debian/PACKAGE.substvars, as ${gfxpack:Provides}
    Debhelper,
    /// Print dependencies of an .rpm with the files that stdin names, for rpm's generators
    Rpm {
        /// The kind of dependency
        #[arg(value_parser = PossibleValuesParser::new(RPM_KINDS.map(|(name, _)| name)))]
        kind: String,
        /// The build root, below which the files lie
        #[arg(long, value_name = "DIR")]
        root: PathBuf,
        /// The package's name
        #[arg(long, value_name = "NAME")]
        package: String,
        /// The package's version and release, as 1.0-1
        #[arg(long, value_name = "VERSION")]
        package_version: String,
    },
}
