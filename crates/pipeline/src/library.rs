//! What the inputs say of the kernels as a whole: names, licences, and which
//! libMIOpen asked for them.

use std::collections::{BTreeMap, BTreeSet};

use gfxpack_model::Target;
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::kernel_package::SourceLicense;
use serde::{Deserialize, Serialize};

use crate::asked_facts::AskedFacts;

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
    /// How many kernels are left out because compilers refuse them, by target.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<Target, u64>,
    /// Which libMIOpen asked for the kernels, and for what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedFacts>,
}

/// Licences by source file name; none where no manifest says.
pub type Licenses = BTreeMap<String, BTreeSet<SourceLicense>>;
