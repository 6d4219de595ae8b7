//! The compilers that made the kernels of the user's cache.

use gfxpack_compile::Cancel;
use gfxpack_runtime::UserPlace;
use gfxpack_runtime::explain::entries;
use gfxpack_toolchain::Search;

use super::finding::Findings;
use super::installed::Installed;
use crate::error::in_full;
use crate::old_kernels::{self, Compilers};
use crate::options::CacheOptions;
use crate::text::counted;
use crate::toolchains;

const ABOUT: &str = "user cache";
/// Kernels of a file that are looked at, since each has to be unpacked.
const ROWS: u64 = 1000;

/// Looks for kernels that none of the installed compilers made.
pub fn check_compilers(
    installed: Installed<'_>,
    search: &Search,
    cache: &CacheOptions,
    cancel: &Cancel,
    findings: &mut Findings<'_>,
) {
    let UserPlace::Dir(directory) = &installed.places.user else { return };
    let rows = if installed.deep { u64::MAX } else { ROWS };
    let mut compilers = Compilers::new();
    for file in entries(directory).filter(|file| file.extension().is_some_and(|e| e == "ukdb")) {
        // What can't be read was told of before.
        let found = old_kernels::compilers(&file, installed.max_object_bytes, rows);
        for (compiler, count) in found.unwrap_or_default() {
            *compilers.entry(compiler).or_default() += count;
        }
    }
    if compilers.is_empty() {
        return;
    }
    let versions = match toolchains::clang_versions(search, cache, cancel) {
        Ok(versions) if !versions.is_empty() => versions,
        Ok(_) => return,
        Err(error) => return findings.note(ABOUT, in_full(&error)),
    };
    for (compiler, count) in old_kernels::not_installed(&compilers, &versions) {
        let what = format!(
            "{} made by `{compiler}`; installed: clang {}. `gfxpack caches clear miopen` has them \
             compiled anew",
            counted(count, "kernel"),
            versions.join(", ")
        );
        findings.note(ABOUT, what);
    }
}
