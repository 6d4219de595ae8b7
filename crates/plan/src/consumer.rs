//! Who looks kernels up.

use serde::{Deserialize, Serialize};

/// Who asks for kernels at run time: that decides where their kdb is
/// installed, and what its package is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consumer {
    /// MIOpen: the kdb goes where MIOpen looks, and its package stands in for
    /// AMD's.
    #[default]
    Miopen,
    /// Programs that use gfxpack's runtime crate: the kdb goes into the
    /// library's own directory, where MIOpen does not look.
    Runtime,
}

impl Consumer {
    /// Whether it is MIOpen.
    #[must_use]
    pub fn is_miopen(&self) -> bool {
        *self == Self::Miopen
    }
}
