//! In which form a kdb is written.

use clap::{Args as ClapArgs, ValueEnum};
use gfxpack_kdb::{Blob, Layout};

/// The form of a kdb.
#[derive(Debug, Clone, Copy, Default, ClapArgs)]
pub(crate) struct KdbForm {
    /// How code objects are stored in a kdb
    #[arg(long, value_enum, default_value_t, help_heading = "Build")]
    pub(crate) blob: BlobArg,
    /// How a kdb lays out its rows
    #[arg(long, value_enum, default_value_t, value_name = "LAYOUT", help_heading = "Build")]
    pub(crate) kdb_layout: KdbLayout,
    /// Record in the kdb what each code object was made of: compiler, source,
    /// gfxpack version
    #[arg(long, help_heading = "Build")]
    pub(crate) provenance: bool,
    /// Name kernels as MIOpen does on Windows: conv.cpp.obj. `dist --layout
    /// windows` does so by itself
    #[arg(long, help_heading = "Build")]
    pub(crate) windows_names: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BlobArg {
    /// Raw: packages compress many kernels at once better than bzip2 each.
    #[default]
    Auto,
    /// bzip2 where that is smaller, as MIOpen does it.
    Bz2,
    /// Uncompressed: larger files that MIOpen reads faster.
    Raw,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KdbLayout {
    /// One table, as MIOpen itself makes it.
    #[default]
    Miopen,
    /// Equal code objects and the text of keys once; MIOpen reads it too.
    Dense,
}

impl From<KdbLayout> for Layout {
    fn from(layout: KdbLayout) -> Self {
        match layout {
            KdbLayout::Miopen => Self::Miopen,
            KdbLayout::Dense => Self::Dense,
        }
    }
}

impl From<BlobArg> for Blob {
    fn from(blob: BlobArg) -> Self {
        match blob {
            BlobArg::Bz2 => Self::Smaller,
            // What gives the smallest packages is raw: docs/packages.md, "Size",
            // has the measurements.
            BlobArg::Auto | BlobArg::Raw => Self::Raw,
        }
    }
}
