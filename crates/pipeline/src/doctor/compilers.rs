//! The compilers that made the kernels of the user's cache.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gfxpack_compile::Cancel;
use gfxpack_kdb::{ReadError, Reader};
use gfxpack_runtime::UserDirectory;
use gfxpack_toolchain::{Search, clang_version, made_by};

use super::finding::Findings;
use super::installed::{InstalledFiles, files_with_extension};
use crate::error::in_full;
use crate::options::CacheOptions;
use crate::text::counted;
use crate::toolchains;

const ABOUT: &str = "user cache";
/// How many kernels of each file are examined; each has to be decompressed.
const ROWS: u64 = 1000;

/// Reports kernels that none of the installed compilers made.
pub fn check_compilers(
    installed: InstalledFiles<'_>,
    search: &Search,
    cache: &CacheOptions,
    cancel: &Cancel,
    findings: &mut Findings<'_>,
) {
    let UserDirectory::Dir(directory) = &installed.directories.user else { return };
    let rows = if installed.deep { u64::MAX } else { ROWS };
    let mut made_by_any = Compilers::new();
    for file in files_with_extension(directory, "ukdb") {
        // Another check has reported files that can't be read.
        let found = compilers(&file, rows);
        for (compiler, count) in found.unwrap_or_default() {
            *made_by_any.entry(compiler).or_default() += count;
        }
    }
    if made_by_any.is_empty() {
        return;
    }
    let versions = match toolchains::clang_versions(search, cache, cancel) {
        Ok(versions) if !versions.is_empty() => versions,
        Ok(_) => return,
        Err(error) => return findings.note(ABOUT, in_full(&error)),
    };
    for (compilers, count) in not_installed(&made_by_any, &versions) {
        let names = Vec::from_iter(compilers).join("` and `");
        let what = format!(
            "{} made by `{names}`; installed: clang {}. `gfxpack caches clear miopen` has them \
             compiled anew",
            counted(count, "kernel"),
            versions.join(", ")
        );
        findings.note(ABOUT, what);
    }
}

/// How many kernels each compiler made. The key holds the names in a kernel's
/// code object: its compiler's, and those of the compilers of what is linked in.
type Compilers = BTreeMap<BTreeSet<String>, u64>;

/// Counts the compilers of a kdb's first `rows` kernels. Kernels without a
/// compiler's name are not counted. If a program has the kdb open, its state is
/// that of when it was last closed.
///
/// # Errors
/// If the kdb can't be read.
fn compilers(kdb: &Path, rows: u64) -> Result<Compilers, ReadError> {
    let reader = Reader::open_at_rest(kdb)?;
    let mut compilers = Compilers::new();
    let mut seen = 0;
    let read = reader.for_each_kernel(|row| {
        if seen == rows {
            return Err(None);
        }
        seen += 1;
        let names = made_by(&row.code_object);
        if !names.is_empty() {
            *compilers.entry(names).or_default() += 1;
        }
        Ok(())
    });
    match read {
        Err(Some(error)) => Err(error),
        Ok(()) | Err(None) => Ok(compilers),
    }
}

/// The compilers that are not installed; `installed` lists versions, such as
/// `15.0.6`.
fn not_installed(compilers: &Compilers, installed: &[String]) -> Compilers {
    let is_installed = |name: &str| {
        clang_version(name).is_some_and(|version| installed.iter().any(|one| one == version))
    };
    compilers
        .iter()
        .filter(|(names, _)| !names.iter().any(|name| is_installed(name)))
        .map(|(names, count)| (names.clone(), *count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_matched_by_their_versions() {
        let names = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        let compilers = Compilers::from([
            (names(&["AMD clang version 17.0.0 (https://github.com/x roc-6.0.0 1)"]), 3),
            (names(&["Debian clang version 15.0.5", "Debian clang version 15.0.6"]), 2),
        ]);
        let others = |installed: &[&str]| {
            let installed: Vec<String> = installed.iter().map(|one| (*one).to_owned()).collect();
            not_installed(&compilers, &installed).into_values().collect::<Vec<u64>>()
        };
        assert_eq!(others(&["15.0.6"]), [3]);
        assert_eq!(others(&["15.0.6", "17.0.0"]), [0; 0]);
        assert_eq!(others(&["15.0.5"]), [3]);
        assert_eq!(others(&["17.0.0-1"]), [3, 2]);
        assert_eq!(others(&[]), [3, 2]);
    }
}
