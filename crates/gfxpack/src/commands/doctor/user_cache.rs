//! The user's own kernel cache, and the compilers that made its kernels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gfxpack_compile::Cancel;
use gfxpack_kdb::{KdbErrorKind, ReadError, Reader};
use gfxpack_pipeline::cache::Cache;
use gfxpack_pipeline::options::Purpose;
use gfxpack_runtime::explain::entries;
use gfxpack_runtime::{KdbDirectories, UserDirectory};
use gfxpack_toolchain::{clang_version, made_by};
use walkdir::WalkDir;

use super::Findings;
use super::kdbs::files_with_extension;
use crate::args::{CacheArgs, ToolchainArgs};
use crate::fail::{Result, in_full};
use crate::output::{counted, size};

const ABOUT: &str = "user cache";

/// Checks the place of the cache, its owner and its contents.
pub(super) fn check(directories: &KdbDirectories, findings: &Findings<'_>) {
    const ELSEWHERE: &str = "set MIOPEN_CUSTOM_CACHE_DIR to a directory of your own";
    match &directories.user {
        UserDirectory::Disabled(why) => findings.warning(
            ABOUT,
            format!("no cache: {why}"),
            "a kernel that no installed kdb has is compiled by every process",
        ),
        UserDirectory::Memory(_) => {
            let what = directories.fallback.as_deref().unwrap_or("it is in memory only");
            findings.problem(ABOUT, what, ELSEWHERE);
        }
        UserDirectory::Unknown(why) => match &directories.fallback {
            Some(fallback) => findings.warning(ABOUT, fallback, ELSEWHERE),
            None => findings.note(ABOUT, format!("no cache yet: {why}")),
        },
        UserDirectory::Dir(directory) => {
            if let Some(fallback) = &directories.fallback {
                findings.warning(ABOUT, fallback, ELSEWHERE);
            }
            check_cache(directory, findings);
        }
        _ => {}
    }
    for directory in &directories.read_only {
        findings.warning(
            ABOUT,
            format!("`{}` is only read: it can't be written to", directory.display()),
            "make it this user's own (`chown`, `chmod u+w`)",
        );
    }
}

fn check_cache(directory: &Path, findings: &Findings<'_>) {
    let shown = format!("`{}`", directory.display());
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return findings.ok(ABOUT, format!("{shown} is made when it is needed"));
        }
        Err(error) => {
            let hint = "check the permissions of the directories above it";
            return findings.problem(ABOUT, format!("{shown} can't be read: {error}"), hint);
        }
    };
    // MIOpen makes it readable for all.
    if metadata.mode() & 0o022 != 0 {
        let what = format!("other users may write to {shown} (mode {:o})", metadata.mode() & 0o777);
        findings.warning(ABOUT, what, "`chmod go-w` it");
    }
    let files = files_with_extension(directory, "ukdb");
    let mut kernels = 0;
    for file in &files {
        match Reader::open(file).and_then(|reader| reader.info()) {
            Ok(info) => kernels += info.rows,
            Err(error) if error.kind() == KdbErrorKind::Unfinished => {
                findings.warning(ABOUT, in_full(&error), error.hint());
            }
            // MIOpen's own databases are in WAL mode; their owner can read them.
            Err(error) if error.kind() == KdbErrorKind::Journal => {}
            Err(error) => {
                let hint = "remove the file: its kernels are compiled anew";
                findings.problem(ABOUT, in_full(&error), hint);
            }
        }
    }
    let (bytes, files) = (size(bytes_below(directory)), files.len());
    findings.ok(ABOUT, format!("{shown}: {bytes}; files: {files}; kernels: {kernels}"));
    for other in other_versions(directory) {
        let bytes = size(bytes_below(&other));
        findings.note(ABOUT, format!("`{}` is of another version: {bytes}", other.display()));
    }
}

/// Caches of other versions beside this one that hold ukdbs.
fn other_versions(directory: &Path) -> Vec<PathBuf> {
    let Some(versions) = directory.parent() else { return Vec::new() };
    let begins_with_digit = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(|first: char| first.is_ascii_digit()))
    };
    let mut others: Vec<PathBuf> = entries(versions)
        .filter(|path| path != directory && begins_with_digit(path) && path.is_dir())
        .filter(|path| !files_with_extension(path, "ukdb").is_empty())
        .collect();
    others.sort();
    others
}

/// The size of all files below a directory, in bytes; symbolic links are not followed.
fn bytes_below(directory: &Path) -> u64 {
    let files = WalkDir::new(directory).into_iter().flatten();
    let files = files.filter(|entry| entry.file_type().is_file());
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// How many kernels of each file are examined without `--deep`; each has to be decompressed.
const ROWS: u64 = 1000;

/// How many kernels each compiler made. The key holds the names in a kernel's code object: its
/// compiler's, and those of the compilers of what is linked in.
type Compilers = BTreeMap<BTreeSet<String>, u64>;

/// Reports kernels of the cache that none of the installed compilers made.
pub(super) fn check_compilers(
    directories: &KdbDirectories,
    deep: bool,
    cancel: &Cancel,
    findings: &Findings<'_>,
) {
    let UserDirectory::Dir(directory) = &directories.user else { return };
    let mut made_by_any = Compilers::new();
    for file in files_with_extension(directory, "ukdb") {
        // Another check has reported files that can't be read.
        let found = compilers(&file, if deep { u64::MAX } else { ROWS });
        for (compiler, count) in found.unwrap_or_default() {
            *made_by_any.entry(compiler).or_default() += count;
        }
    }
    if made_by_any.is_empty() {
        return;
    }
    let versions = match clang_versions(cancel) {
        Ok(versions) if !versions.is_empty() => versions,
        Ok(_) => return,
        Err(error) => return findings.note(ABOUT, in_full(&error)),
    };
    for (compilers, count) in not_installed(made_by_any, &versions) {
        let (count, names) = (counted(count, "kernel"), Vec::from_iter(compilers).join("` and `"));
        let versions = versions.join(", ");
        findings.note(
            ABOUT,
            format!(
                "{count} made by `{names}`; installed: clang {versions}. `gfxpack caches clear \
                 miopen` has them compiled anew"
            ),
        );
    }
}

/// The clang versions of this machine's toolchains, in order of preference.
fn clang_versions(cancel: &Cancel) -> Result<Vec<String>> {
    let search = ToolchainArgs::default().search();
    let cache = Cache::open_for(&CacheArgs::default(), Purpose::Look)?;
    cache.toolchains(&search, cancel)?.clang_versions()
}

/// Counts the compilers of a kdb's first `rows` kernels. Kernels without a compiler's name are not
/// counted. If a program has the kdb open, its state is that of when it was last closed.
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

/// The compilers that are not installed; `installed` lists versions, such as `15.0.6`.
fn not_installed(mut compilers: Compilers, installed: &[String]) -> Compilers {
    let is_installed = |name: &str| {
        clang_version(name).is_some_and(|version| installed.iter().any(|one| one == version))
    };
    compilers.retain(|names, _| !names.iter().any(|name| is_installed(name)));
    compilers
}
