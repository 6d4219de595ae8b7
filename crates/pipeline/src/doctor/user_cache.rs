//! The user's own kernel cache.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{KdbErrorKind, Reader};
use gfxpack_runtime::explain::entries;
use gfxpack_runtime::{KdbDirectories, UserDirectory};
use walkdir::WalkDir;

use super::finding::Findings;
use super::installed::files_with_extension;
use crate::error::in_full;
use crate::text::size;

const ABOUT: &str = "user cache";

/// Checks the place of the cache, its owner and its contents.
pub(super) fn check(directories: &KdbDirectories, findings: &mut Findings<'_>) {
    const ELSEWHERE: &str = "set MIOPEN_CUSTOM_CACHE_DIR to a directory of your own";
    match &directories.user {
        UserDirectory::Disabled { why } => findings.warning(
            ABOUT,
            format!("no cache: {why}"),
            "a kernel that no installed kdb has is compiled by every process",
        ),
        UserDirectory::Memory { .. } => {
            let what = directories.fallback.as_deref().unwrap_or("it is in memory only");
            findings.problem(ABOUT, what, ELSEWHERE);
        }
        UserDirectory::Unknown { why } => match &directories.fallback {
            Some(fallback) => findings.warning(ABOUT, fallback.clone(), ELSEWHERE),
            None => findings.note(ABOUT, format!("no cache yet: {why}")),
        },
        UserDirectory::Dir(directory) => {
            if let Some(fallback) = &directories.fallback {
                findings.warning(ABOUT, fallback.clone(), ELSEWHERE);
            }
            cache(directory, findings);
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

fn cache(directory: &Path, findings: &mut Findings<'_>) {
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
            Err(error) => findings.problem(
                ABOUT,
                in_full(&error),
                "remove the file: its kernels are compiled anew",
            ),
        }
    }
    findings.ok(
        ABOUT,
        format!("{shown}: {}; files: {}; kernels: {kernels}", size(bytes(directory)), files.len()),
    );
    old_versions(directory, findings);
}

/// Reports caches of other versions beside this one, if they hold ukdbs.
fn old_versions(directory: &Path, findings: &mut Findings<'_>) {
    let Some(versions) = directory.parent() else { return };
    let begins_with_digit = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(|first: char| first.is_ascii_digit()))
    };
    let mut others: Vec<PathBuf> = entries(versions)
        .filter(|path| path != directory && begins_with_digit(path) && path.is_dir())
        .filter(|path| !files_with_extension(path, "ukdb").is_empty())
        .collect();
    others.sort();
    for other in others {
        let what = format!("`{}` is of another version: {}", other.display(), size(bytes(&other)));
        findings.note(ABOUT, what);
    }
}

/// The size of all files below a directory, in bytes; symbolic links are not
/// followed.
fn bytes(directory: &Path) -> u64 {
    let files = WalkDir::new(directory).into_iter().flatten();
    let files = files.filter(|entry| entry.file_type().is_file());
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}
