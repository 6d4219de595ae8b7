//! The files in which libraries look kernels up, in any format.

mod kdb;
mod rocfft;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{Blob, MiopenVersion};
use gfxpack_model::{KernelFileFormat, KernelKey, Target};

use crate::error::{self, Error, Result};
use crate::kernel_library::KernelLibrary;
use crate::rocfft::RocfftFacts;

/// The operations for files in which these kernels are looked up.
pub(crate) fn of_library(library: &KernelLibrary) -> Box<dyn FormatOperations> {
    operations(library.consumer.properties().format, library.rocfft.as_ref())
}

/// The operations for existing files, whichever library they were made for. They
/// may merge, verify and list files, but not write them: the keys of a rocFFT
/// cache need the facts of a library, which are not known here.
pub(crate) fn of_format(format: KernelFileFormat) -> Box<dyn FormatOperations> {
    operations(format, None)
}

fn operations(format: KernelFileFormat, rocfft: Option<&RocfftFacts>) -> Box<dyn FormatOperations> {
    match format {
        KernelFileFormat::Kdb => Box::new(kdb::Kdb),
        KernelFileFormat::RocfftCache => Box::new(rocfft::RocfftCache(rocfft.cloned())),
    }
}

/// The format of a file with kernels, and the target, both from its name.
///
/// # Errors
/// If the name has no target.
pub(crate) fn format_and_target(path: &Path) -> Result<(KernelFileFormat, Target)> {
    let refused = |formats: &[KernelFileFormat]| match std::fs::metadata(path) {
        Err(source) => error::io("read", path)(source),
        Ok(metadata) if metadata.is_dir() => error::usage(
            format!("failed to read `{}`: it is a directory", path.display()),
            "name the files in it",
        ),
        Ok(_) => unnamed(path, formats),
    };
    let all = || refused(&KernelFileFormat::ALL);
    let format = KernelFileFormat::of_file_name(path).ok_or_else(all)?;
    let target = format.target_of(path).map_err(|_| refused(&[format]))?;
    Ok((format, target.ok_or_else(all)?))
}

/// The error for a file without a target in its name, in any of these formats.
pub(crate) fn unnamed(path: &Path, formats: &[KernelFileFormat]) -> Error {
    let (library, examples) = formats[0].expected();
    let other = |format: &KernelFileFormat| {
        let (library, examples) = format.expected();
        format!(", or {library}, as {examples}")
    };
    let others: String = formats[1..].iter().map(other).collect();
    error::usage(
        format!("failed to tell the target of `{}` by its name", path.display()),
        format!("name it as {library} looks for it, as {examples}{others}"),
    )
}

/// Operations on files of one format. [`gfxpack_model::KernelFileFormat`] knows
/// their names, [`gfxpack_plan::consumer::ConsumerProperties`] where they are
/// installed.
///
/// The parameters are those of kdbs, the first format. A format with other keys
/// derives them from the [`KernelKey`]. It may ignore how objects are stored.
pub(crate) trait FormatOperations: Sync {
    /// Writes a file with these rows atomically, and returns their number.
    /// Not for operations of [`of_format`], which are for reading.
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
    fn identity(&self, blob: Blob) -> String;
}

/// The rows of a new file, in canonical order.
pub(crate) struct Rows<'a> {
    pub(crate) target: &'a Target,
    /// Each key with the size of its object, if known.
    pub(crate) keys: &'a [(&'a KernelKey, u64)],
    pub(crate) blob: Blob,
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

/// Verifies a file, and returns its number of rows.
///
/// # Errors
/// If the file can't be read, or something is wrong with it.
pub(crate) fn verified(files: &dyn FormatOperations, path: &Path, target: &Target) -> Result<u64> {
    let verified = files.verify(path, Some(target))?;
    match verified.findings.first() {
        Some(finding) => Err(error::unsound(format!("`{}`: {finding}", path.display()))),
        None => Ok(verified.rows),
    }
}
