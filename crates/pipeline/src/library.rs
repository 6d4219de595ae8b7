//! What the inputs say of the kernels as a whole: names, licences, and which
//! library asked for them.

use std::collections::{BTreeMap, BTreeSet};

use gfxpack_model::{Digest, Target};
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::kernel_package::SourceLicense;
use serde::{Deserialize, Serialize};

use crate::asked_facts::{AskedFacts, ProblemsFact};

/// What the packages say of the kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// The library's name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Who maintains the packages.
    pub maintainer: Option<String>,
    /// What packages say of the kernels.
    pub description: Option<String>,
    /// Its home page.
    pub homepage: Option<String>,
    /// Who reads the kdbs.
    #[serde(default, skip_serializing_if = "Consumer::is_miopen")]
    pub reader: Consumer,
    /// Licences by source.
    #[serde(default, skip_serializing_if = "Licenses::is_empty")]
    pub licenses: Licenses,
    /// Whether only what other kdbs lack was built.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_missing: bool,
    /// How many kernels are left out because compilers refuse them, by target.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<Target, u64>,
    /// Which librocfft asked for the kernels, and for what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rocfft: Option<RocfftFacts>,
    /// Which libMIOpen asked for the kernels, and for what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedFacts>,
}

/// The librocfft that asked for the kernels, as manifests and packages say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RocfftFacts {
    /// Its version: `1.0.32`.
    pub version: String,
    /// Where it comes from.
    pub origin: String,
    /// SHA-256 of the library.
    pub sha256: Digest,
    /// `HIP_VERSION` of the headers that it was built with. It finds only kernels
    /// with this number and the next.
    pub hip_version: i64,
    /// SHA-256 of the sources of its generator.
    pub generator_sum: Digest,
    /// Whether it reads one file for all processors.
    pub shares_file: bool,
    /// Lists of plans that it was asked for.
    pub plans: Vec<ProblemsFact>,
}

/// Licences by source file name; none where no manifest says.
pub type Licenses = BTreeMap<String, BTreeSet<SourceLicense>>;
