//! The files in which libraries look kernels up, in any format: [`KernelFileFormat`] knows their
//! names, [`gfxpack_plan::consumer::ConsumerProperties`] where they are installed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{Blob, Conflict, CopyOptions, ReadError, Row, VerifyOptions, WriteOptions};
use gfxpack_model::{KernelFileFormat, KernelKey, Target};
use gfxpack_rocfft::CacheKey;

use crate::error::{self, Error, Result, in_full};
use crate::kernel_library::KernelLibrary;
use crate::rocfft::{RocfftFacts, kernel_name, source_name};

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

/// The key of a kernel in a rocFFT's cache.
fn cache_key(facts: &RocfftFacts, key: &KernelKey, target: &Target) -> CacheKey {
    let mut generator_sum = [0; 32];
    generator_sum.copy_from_slice(facts.generator_sum.as_ref());
    CacheKey {
        kernel_name: kernel_name(key).to_owned(),
        arch: target.id().processor().to_owned(),
        hip_version: facts.hip_version,
        generator_sum,
    }
}

/// Writes a file of the library's format atomically, with these rows, which are sorted by their
/// keys, and returns their number. `object` returns the object of a row; `progress`
/// gets the numbers of rows written and of all rows, which are equal in its last call.
pub(crate) fn write(
    path: &Path,
    target: &Target,
    library: &KernelLibrary,
    blob: Blob,
    rows: &[Row<'_>],
    object: &(dyn Fn(usize) -> Result<Vec<u8>> + Sync),
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<u64> {
    if library.consumer.properties().format == KernelFileFormat::Kdb {
        let mut options = WriteOptions::default();
        options.progress = Some(progress);
        options.blob = blob;
        options.miopen_version = library.miopen_version();
        return Ok(gfxpack_kdb::write(path, rows, &options, object)?.rows);
    }
    let facts = library.rocfft.as_ref().ok_or_else(|| {
        error::usage(
            "failed to tell which rocFFT looks these kernels up",
            "make the plan again, with --plans",
        )
    })?;
    // Keys of sources sort differently from names.
    let mut order: Vec<(CacheKey, usize)> =
        rows.iter().map(|row| cache_key(facts, row.key, target)).zip(0..).collect();
    order.sort();
    let keys: Vec<CacheKey> = order.iter().map(|(key, _)| key.clone()).collect();
    let object = |position: usize| {
        let object = object(order[position].1)?;
        progress(position as u64 + 1, keys.len() as u64);
        Ok(object)
    };
    gfxpack_rocfft::write(path, &keys, object)?;
    Ok(keys.len() as u64)
}

/// What determines the bytes of a file besides keys and objects. rocFFT's caches have objects
/// uncompressed, whatever is said of kdbs.
pub(crate) fn identity(library: &KernelLibrary, blob: Blob) -> String {
    match library.consumer.properties().format {
        KernelFileFormat::Kdb => format!("{blob:?}"),
        KernelFileFormat::RocfftCache => {
            let facts = library.rocfft.as_ref();
            format!("{:?}", facts.map(|facts| (facts.hip_version, facts.generator_sum)))
        }
    }
}

pub(crate) fn merge(format: KernelFileFormat, files: &[PathBuf], out: &Path) -> Result<()> {
    match format {
        KernelFileFormat::Kdb => {
            gfxpack_kdb::merge(files, out, Conflict::Error, &CopyOptions::default())?;
            Ok(())
        }
        KernelFileFormat::RocfftCache => {
            gfxpack_rocfft::merge(files, out).map_err(|error| error::unsound(in_full(&error)))
        }
    }
}

/// The names of the sources of a file without findings.
pub(crate) fn source_names(format: KernelFileFormat, path: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    match format {
        KernelFileFormat::Kdb => gfxpack_kdb::Reader::open(path)?.for_each_key(|key| {
            names.extend(key.source_name().map(str::to_owned));
            Ok::<(), ReadError>(())
        })?,
        KernelFileFormat::RocfftCache => {
            gfxpack_rocfft::Reader::open(path)?.for_each_key(|key| {
                names.insert(source_name(&key.kernel_name));
                Ok(())
            })?;
        }
    }
    Ok(names)
}

pub(crate) struct Verified {
    /// Number of rows that were read.
    pub(crate) rows: u64,
    /// The first findings.
    pub(crate) findings: Vec<String>,
    /// The number of all findings.
    pub(crate) total_findings: u64,
}

/// Reads a file back and returns what is wrong with it.
///
/// # Errors
/// If the file can't be read at all.
pub(crate) fn verify(
    format: KernelFileFormat,
    path: &Path,
    target: Option<&Target>,
) -> Result<Verified> {
    match format {
        KernelFileFormat::Kdb => {
            let report = gfxpack_kdb::verify(path, target, &VerifyOptions::default())?;
            let findings = report.findings.iter().map(ToString::to_string).collect();
            let total_findings = report.total_findings();
            Ok(Verified { rows: report.rows, findings, total_findings })
        }
        KernelFileFormat::RocfftCache => {
            let arch = target.map(|target| target.id().processor());
            let gfxpack_rocfft::Report { rows, findings, total_findings } =
                gfxpack_rocfft::verify(path, arch)?;
            Ok(Verified { rows, findings, total_findings })
        }
    }
}

/// Verifies a file, and returns its number of rows.
///
/// # Errors
/// If the file can't be read, or something is wrong with it.
pub(crate) fn verified(format: KernelFileFormat, path: &Path, target: &Target) -> Result<u64> {
    let verified = verify(format, path, Some(target))?;
    match verified.findings.first() {
        Some(finding) => Err(error::unsound(format!("`{}`: {finding}", path.display()))),
        None => Ok(verified.rows),
    }
}
