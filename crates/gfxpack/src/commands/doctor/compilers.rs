//! The compilers that made the kernels of the user's cache.

use gfxpack_compile::Cancel;
use gfxpack_pipeline::error::in_full;
use gfxpack_pipeline::old_kernels::{self, Compilers};
use gfxpack_pipeline::toolchains;
use gfxpack_runtime::explain::entries;
use gfxpack_runtime::{Places, UserPlace};

use super::Checks;
use crate::environment::Environment;
use crate::options;
use crate::output::counted;

const ABOUT: &str = "user cache";
/// Kernels of a file that are looked at, since each has to be unpacked.
const ROWS: u64 = 1000;

/// Tells of kernels that none of the installed compilers made.
pub(super) fn check(
    places: &Places,
    deep: bool,
    environment: &Environment,
    cancel: &Cancel,
    checks: &mut Checks<'_>,
) {
    let UserPlace::Dir(directory) = &places.user else { return };
    let rows = if deep { u64::MAX } else { ROWS };
    let mut compilers = Compilers::new();
    for file in entries(directory).filter(|file| file.extension().is_some_and(|e| e == "ukdb")) {
        // What can't be read was told of before.
        let found = old_kernels::compilers(&file, checks.max_object.bytes, rows);
        for (compiler, count) in found.unwrap_or_default() {
            *compilers.entry(compiler).or_default() += count;
        }
    }
    if compilers.is_empty() {
        return;
    }
    let cache = options::cache_dir(&Default::default(), environment);
    let search = options::search(&Default::default(), environment);
    let installed = match toolchains::clang_versions(&search, &cache, cancel) {
        Ok(installed) if !installed.is_empty() => installed,
        Ok(_) => return,
        Err(error) => return checks.note(ABOUT, in_full(&error)),
    };
    for (compiler, count) in old_kernels::not_installed(&compilers, &installed) {
        let what = format!(
            "{} made by `{compiler}`; installed: clang {}. `gfxpack caches clear miopen` has them \
             compiled anew",
            counted(count, "kernel"),
            installed.join(", ")
        );
        checks.note(ABOUT, what);
    }
}
