//! The common properties of all packages of a release.

use std::collections::BTreeSet;

use gfxpack_model::{InstallLayout, Target};
use serde::{Deserialize, Serialize};

use crate::consumer::{Consumer, named};

/// A licence with its holder and its extent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceLicense {
    /// SPDX expression.
    pub license: String,
    /// Copyright holders; lines after the first are further ones.
    pub copyright: String,
}

/// The common properties of all packages of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The name of the kernels as a whole.
    pub library: String,
    /// A paragraph of description, or empty.
    pub description: String,
    /// Home page, or empty.
    pub homepage: String,
    /// Upstream version.
    pub version: String,
    /// Debian revision and rpm release.
    pub revision: String,
    /// `Name <mail>`.
    pub maintainer: String,
    /// Licences of the sources, by source file name. A source in several inputs may have several,
    /// which all apply.
    pub licenses: BTreeSet<(String, SourceLicense)>,
    /// Where the kdb is installed.
    pub layout: InstallLayout,
    /// The library that looks up the kernels at run time.
    pub consumer: Consumer,
    /// Whether it reads one file for all GPUs.
    pub shares_file: bool,
    /// The only package of the consumer that finds these kernels: name and
    /// version. `None` if any does, or it is not known.
    pub exact_package: Option<(String, String)>,
    /// The template of package names: `{gfx}` is replaced by the target and `{rocm}` by the
    /// layout's ROCm version, which is appended if there is no `{rocm}`.
    pub name_template: String,
    /// Seconds since the epoch for every time stamp.
    pub source_date_epoch: u64,
}

impl Release {
    /// The absolute directory of the kdbs.
    pub fn kdb_dir(&self) -> String {
        (self.consumer.properties().directory)(&self.layout, &self.library)
    }

    /// The name under which the file with a target's kernels is installed.
    pub(super) fn installed_name(&self, target: &Target) -> String {
        self.consumer.properties().format.name_looked_for(target, self.shares_file)
    }

    /// The term for the kernels in a summary.
    pub(super) fn kernels(&self) -> String {
        named(self.consumer.properties().kernels, &self.library)
    }
}
