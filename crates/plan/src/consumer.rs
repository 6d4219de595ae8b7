//! Who looks kernels up.

use gfxpack_model::Target;
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
    /// rocFFT: the kernels go into a kernel cache of its own format.
    Rocfft,
}

impl Consumer {
    /// Whether it is MIOpen.
    #[must_use]
    pub fn is_miopen(&self) -> bool {
        *self == Self::Miopen
    }

    /// The format of the file with the kernels.
    #[must_use]
    pub fn format(self) -> StoreFormat {
        match self {
            Self::Miopen | Self::Runtime => StoreFormat::Kdb,
            Self::Rocfft => StoreFormat::RocfftCache,
        }
    }
}

/// The format of a file in which a library looks kernels up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreFormat {
    /// MIOpen's, which gfxpack's runtime reads too.
    #[default]
    Kdb,
    /// rocFFT's kernel cache.
    RocfftCache,
}

impl StoreFormat {
    /// Whether it is a kdb.
    #[must_use]
    pub fn is_kdb(&self) -> bool {
        *self == Self::Kdb
    }

    /// The name of the file with the kernels of a target.
    #[must_use]
    pub fn file_name(self, target: &Target) -> String {
        match self {
            Self::Kdb => target.kdb_file_name(),
            Self::RocfftCache => format!("rocfft_kernel_cache_{}.db", target.id().processor()),
        }
    }

    /// The directory of such files in that of a build's outputs.
    #[must_use]
    pub fn output_dir(self) -> &'static str {
        match self {
            Self::Kdb => "kdb",
            Self::RocfftCache => "rocfft",
        }
    }
}
