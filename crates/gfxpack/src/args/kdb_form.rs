//! In which form a kdb is written.

use clap::Args as ClapArgs;
use gfxpack_kdb::{Blob, Layout};

use super::parsers::{Choice, one_of};

/// The form of a kdb.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct KdbForm {
    /// How code objects are stored in a kdb
    #[arg(long, value_parser = one_of(&BLOBS), default_value = "auto", help_heading = "Build")]
    pub(crate) blob: Blob,
    /// How a kdb lays out its rows
    #[arg(long, value_parser = one_of(&LAYOUTS), default_value = "miopen", value_name = "LAYOUT",
          help_heading = "Build")]
    pub(crate) kdb_layout: Layout,
    /// Record in the kdb what each code object was made of: compiler, source,
    /// gfxpack version
    #[arg(long, help_heading = "Build")]
    pub(crate) provenance: bool,
    /// Name kernels as MIOpen does on Windows: conv.cpp.obj. `dist --layout
    /// windows` does so by itself
    #[arg(long, help_heading = "Build")]
    pub(crate) windows_names: bool,
}

/// How code objects are stored. What gives the smallest packages is raw:
/// docs/packages.md, "Size", has the measurements.
pub(crate) const BLOBS: [Choice<Blob>; 3] = [
    ("auto", "Raw: packages compress many kernels at once better than bzip2 each", Blob::Raw),
    ("bz2", "bzip2 where that is smaller, as MIOpen does it", Blob::Smaller),
    ("raw", "Uncompressed: larger files that MIOpen reads faster", Blob::Raw),
];

/// How rows are laid out.
pub(crate) const LAYOUTS: [Choice<Layout>; 2] = [
    ("miopen", "One table, as MIOpen itself makes it", Layout::Miopen),
    ("dense", "Equal code objects and the text of keys once; MIOpen reads it too", Layout::Dense),
];
