//! rocFFT's kernel caches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::Blob;
use gfxpack_model::{KernelKey, Target};
use gfxpack_rocfft::CacheKey;

use super::{FormatOperations, Rows, Verified};
use crate::error::{self, Result, in_full};
use crate::rocfft::{RocfftFacts, kernel_name};

/// The format of the caches of one library. The library must be known to write one.
pub(super) struct RocfftCache(pub(super) Option<RocfftFacts>);

/// The key of a kernel in a library's cache.
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

impl FormatOperations for RocfftCache {
    fn write(&self, path: &Path, rows: &Rows<'_>) -> Result<u64> {
        let Some(facts) = &self.0 else {
            return Err(error::usage(
                "failed to tell which rocFFT looks these kernels up",
                "make the plan again, with --plans",
            ));
        };
        let keys = rows.keys.iter().map(|(key, _)| cache_key(facts, key, rows.target));
        // Keys of sources sort differently from names.
        let mut order: Vec<(CacheKey, usize)> = keys.zip(0..).collect();
        order.sort();
        let keys: Vec<CacheKey> = order.iter().map(|(key, _)| key.clone()).collect();
        let object = |position: usize| {
            let object = (rows.object)(order[position].1)?;
            (rows.progress)(position as u64 + 1, keys.len() as u64);
            Ok(object)
        };
        gfxpack_rocfft::write(path, &keys, object)?;
        Ok(keys.len() as u64)
    }

    fn merge(&self, files: &[PathBuf], out: &Path) -> Result<()> {
        let merged = gfxpack_rocfft::merge(files, out);
        merged.map_err(|error| error::unsound(in_full(&error)))
    }

    fn verify(&self, path: &Path, target: Option<&Target>) -> Result<Verified> {
        let report = gfxpack_rocfft::verify(path, target.map(|target| target.id().processor()))?;
        Ok(Verified {
            rows: report.rows,
            findings: report.findings.iter().map(ToString::to_string).collect(),
            total_findings: report.total_findings,
        })
    }

    fn source_names(&self, path: &Path) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        gfxpack_rocfft::Reader::open(path)?.for_each_key(|key| {
            names.insert(crate::rocfft::source_name(&key.kernel_name));
            Ok(())
        })?;
        Ok(names)
    }

    /// Objects are stored uncompressed, whatever is said of kdbs.
    fn identity(&self, _: Blob) -> String {
        let facts = self.0.as_ref().map(|facts| (facts.hip_version, facts.generator_sum));
        format!("{facts:?}")
    }
}
