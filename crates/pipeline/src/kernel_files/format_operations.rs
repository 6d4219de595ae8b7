//! Operations on files in which a library looks kernels up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::MiopenVersion;
use gfxpack_model::{KernelKey, Target};

use crate::error::Result;
use crate::options::KdbForm;

/// Operations on files of one format. [`gfxpack_model::KernelFileFormat`] knows
/// their names, [`gfxpack_plan::consumer::ConsumerProperties`] where they are
/// installed.
///
/// The parameters are those of kdbs, the first format. A format with other keys
/// derives them from the [`KernelKey`]. It may ignore the [`KdbForm`].
pub(crate) trait FormatOperations: Sync {
    /// Writes a file with these rows atomically, and returns their number.
    /// Not for operations of [`super::of_format`], which are for reading.
    ///
    /// # Errors
    /// If an object can't be read or the file can't be written.
    fn write(&self, path: &Path, rows: &Rows<'_>) -> Result<u64>;

    /// Writes the rows of several files into one.
    ///
    /// # Errors
    /// If they can't be read, or the file can't be written.
    fn merge(&self, files: &[PathBuf], out: &Path) -> Result<()>;

    /// Reads a file back and returns what is wrong with it.
    ///
    /// # Errors
    /// If the file can't be read at all.
    fn verify(&self, path: &Path, target: Option<&Target>) -> Result<Verified>;

    /// The names of the sources of a file without findings.
    ///
    /// # Errors
    /// If the file can't be read.
    fn source_names(&self, path: &Path) -> Result<BTreeSet<String>>;

    /// What determines the bytes of a file besides keys and objects.
    fn identity(&self, form: KdbForm) -> String;
}

/// The rows of a new file, in canonical order.
pub(crate) struct Rows<'a> {
    pub(crate) target: &'a Target,
    /// Each key with the size of its object, if known.
    pub(crate) keys: &'a [(&'a KernelKey, u64)],
    pub(crate) form: KdbForm,
    /// The MIOpen that looks for them.
    pub(crate) miopen_version: MiopenVersion,
    /// Returns the object of a row.
    pub(crate) object: &'a (dyn Fn(usize) -> Result<Vec<u8>> + Sync),
    /// Called with the number of rows written and of all rows; the last call has
    /// all.
    pub(crate) progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// The result of verifying a file.
pub(crate) struct Verified {
    /// Number of rows that were read.
    pub(crate) rows: u64,
    /// The first findings.
    pub(crate) findings: Vec<String>,
    /// The number of all findings.
    pub(crate) total_findings: u64,
}
