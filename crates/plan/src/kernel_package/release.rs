//! What all packages of one release have in common.

use std::collections::BTreeSet;

use gfxpack_model::{InstallLayout, Target};
use serde::{Deserialize, Serialize};

use super::readers::{named, reader};
use crate::consumer::Consumer;

/// A licence with whose it is and what it covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceLicense {
    /// SPDX expression.
    pub license: String,
    /// Copyright holders; lines after the first are further ones.
    pub copyright: String,
}

/// What all packages of a build have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// What the kernels are called as a whole.
    pub library: String,
    /// A paragraph about them, or empty.
    pub description: String,
    /// Home page, or empty.
    pub homepage: String,
    /// Upstream version.
    pub version: String,
    /// Debian revision and rpm release.
    pub revision: String,
    /// `Name <mail>`.
    pub maintainer: String,
    /// Licences of the sources, by source file name; a source that several
    /// inputs name may have several, which all hold.
    pub licenses: BTreeSet<(String, SourceLicense)>,
    /// Where the kdb goes.
    pub layout: InstallLayout,
    /// Who asks for the kernels at run time.
    pub reader: Consumer,
    /// Which rocFFT it is, where that reads the files.
    pub rocfft: Option<RocfftRelease>,
    /// Package name, `{gfx}` standing for the target and `{rocm}` for the
    /// layout's ROCm version, which else goes to the end.
    pub name_template: String,
    /// Seconds since the epoch for every time stamp.
    pub source_date_epoch: u64,
}

/// The one file of a rocFFT that has no file for each processor.
///
/// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `default_cache_filename`.
const ROCFFT_SHARED: &str = "rocfft_kernel_cache.db";

/// The rocFFT that reads the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RocfftRelease {
    /// Whether it reads one file for all processors.
    pub shares_file: bool,
    /// Its package, where that is known: name and version.
    pub package: Option<(String, String)>,
}

impl Release {
    /// The absolute directory of the kdbs.
    #[must_use]
    pub fn kdb_dir(&self) -> String {
        (reader(self.reader).directory)(&self.layout, &self.library)
    }

    /// Whether the library reads one file for all GPUs.
    #[must_use]
    pub fn shares_file(&self) -> bool {
        self.rocfft.as_ref().is_some_and(|rocfft| rocfft.shares_file)
    }

    /// The name under which the file with a target's kernels is installed.
    pub(super) fn installed_name(&self, target: &Target) -> String {
        if self.shares_file() {
            ROCFFT_SHARED.to_owned()
        } else {
            self.reader.format().file_name(target)
        }
    }

    /// What the kernels are called in a summary.
    pub(super) fn kernels(&self) -> String {
        named(reader(self.reader).kernels, &self.library)
    }
}
