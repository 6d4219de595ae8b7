//! What can be done with files in which a library looks kernels up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_compile::CompileError;
use gfxpack_model::{KernelKey, Target};

use crate::error::Result;
use crate::options::KdbForm;

/// What can be done with files of one format. What they are
/// called is the matter of [`gfxpack_model::KernelFileFormat`], where they are
/// installed that of [`gfxpack_plan::consumer::ConsumerProperties`].
///
/// Parameters are those of kdbs, the first format. A format that has other keys
/// makes them of the [`KernelKey`], which is a stand-in for these; it may ignore
/// the [`KdbForm`], origins and `max_object_bytes` where its files have no such thing.
pub(crate) trait FormatOperations: Sync {
    /// Writes a file with these rows, whole or not at all, and gives their
    /// number. Not for operations of a format alone ([`super::of_format`]).
    ///
    /// # Errors
    /// Where an object can't be had or the file not be written.
    fn write(&self, path: &Path, rows: &Rows<'_>) -> Result<u64>;

    /// Writes the rows of several files into one, laid out as the first is.
    ///
    /// # Errors
    /// Where they can't be read, or the file not be written.
    fn merge(&self, files: &[PathBuf], out: &Path) -> Result<()>;

    /// What is wrong with a file, read as a stranger would.
    ///
    /// # Errors
    /// Where it can't be read at all.
    fn verify(
        &self,
        path: &Path,
        target: Option<&Target>,
        max_object_bytes: u64,
    ) -> Result<Verified>;

    /// What a file with nothing wrong says of its sources: their names.
    ///
    /// # Errors
    /// Where it can't be read.
    fn source_names(&self, path: &Path, max_object_bytes: u64) -> Result<BTreeSet<String>>;

    /// What besides keys and objects decides the bytes of a file.
    fn identity(&self, form: KdbForm) -> String;
}

/// Where the object of a row came from.
pub(crate) type OriginOf<'a> = dyn Fn(usize) -> Option<Arc<gfxpack_kdb::ObjectOrigin>> + Sync + 'a;

/// The rows of a file that is to be written, in canonical order.
pub(crate) struct Rows<'a> {
    pub(crate) target: &'a Target,
    /// Each key with the size of its object, where it is known.
    pub(crate) keys: &'a [(&'a KernelKey, u64)],
    pub(crate) form: KdbForm,
    /// Where the object of a row came from, if that is to be recorded.
    pub(crate) origin: Option<&'a OriginOf<'a>>,
    /// The object of a row.
    pub(crate) object: &'a (dyn Fn(usize) -> Result<Vec<u8>, CompileError> + Sync),
    /// Called with how many rows of how many are written, at last with all.
    pub(crate) progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// What verifying came to.
pub(crate) struct Verified {
    /// Rows that were read.
    pub(crate) rows: u64,
    /// What is wrong, the first of it.
    pub(crate) findings: Vec<String>,
    /// How much is wrong in all.
    pub(crate) total_findings: u64,
}
