//! What all packages of one release have in common.

use std::collections::BTreeSet;

use gfxpack_model::{InstallLayout, Target};
use serde::{Deserialize, Serialize};

use crate::consumer::{Consumer, named};

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
    pub consumer: Consumer,
    /// Whether it reads one file for all GPUs.
    pub shares_file: bool,
    /// The only package of the consumer that finds these kernels: name and
    /// version. `None` if any does, or it is not known.
    pub exact_package: Option<(String, String)>,
    /// Package name, `{gfx}` standing for the target and `{rocm}` for the
    /// layout's ROCm version, which else goes to the end.
    pub name_template: String,
    /// Seconds since the epoch for every time stamp.
    pub source_date_epoch: u64,
}

impl Release {
    /// The absolute directory of the kdbs.
    #[must_use]
    pub fn kdb_dir(&self) -> String {
        (self.consumer.properties().directory)(&self.layout, &self.library)
    }

    /// The name under which the file with a target's kernels is installed.
    pub(super) fn installed_name(&self, target: &Target) -> String {
        self.consumer.properties().format.file_read(target, self.shares_file)
    }

    /// What the kernels are called in a summary.
    pub(super) fn kernels(&self) -> String {
        named(self.consumer.properties().kernels, &self.library)
    }
}
