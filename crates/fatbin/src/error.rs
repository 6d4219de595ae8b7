//! Why a file is not read or not made smaller.

use std::io;

/// Why a file is not read or not made smaller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file can't be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is damaged, or no compiler or linker that is known lays a file out so.
    #[error("its layout is not understood: {0}")]
    Layout(String),
    /// Without the code for other GPUs, a part of the file would have none.
    #[error("no code for {targets} in {without} of its {of} offload bundles")]
    NoCode {
        /// The bundles that would be left without code.
        without: usize,
        /// All bundles.
        of: usize,
        /// The targets.
        targets: String,
    },
}

/// An error about the layout.
pub(crate) fn layout<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error::Layout(what.into()))
}
