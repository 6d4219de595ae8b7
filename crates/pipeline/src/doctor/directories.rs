//! The directories of installed kdbs.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gfxpack_runtime::{KdbDirectories, KdbDirectory};

use super::finding::Findings;
use crate::text::joined;

const ABOUT: &str = "directory";
/// Permission bit: everybody may write.
pub(super) const OTHERS_WRITE: u32 = 0o002;

/// Checks the directories in which kdbs are looked for.
pub(super) fn check(directories: &KdbDirectories, findings: &mut Findings<'_>) {
    for note in &directories.notes {
        findings.warning(
            ABOUT,
            note.clone(),
            "`gfxpack doctor --env` tells what each variable does",
        );
    }
    if directories.system_disabled {
        // The check of variables has reported the one that disables it.
        return;
    }
    let mut any = false;
    for directory in &directories.system {
        any |= check_directory(directory, findings);
    }
    if !any {
        let asked =
            directories.system.iter().map(|directory| format!("`{}`", directory.path.display()));
        findings.problem(
            ABOUT,
            format!("no directory of installed kdbs is there: {}", joined(asked)),
            "install a kernel package, or name its directory with MIOPEN_SYSTEM_DB_PATH",
        );
    }
}

/// Checks one directory; whether it exists.
fn check_directory(directory: &KdbDirectory, findings: &mut Findings<'_>) -> bool {
    let path = directory.path.as_path();
    let shown = format!("`{}` ({})", path.display(), directory.rule);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
        Err(error) => {
            let hint = "check the permissions of the directories above it";
            findings.problem(ABOUT, format!("{shown} can't be read: {error}"), hint);
            return true;
        }
    };
    if !metadata.is_dir() {
        let hint = "a directory is looked for: name the one that the kdbs are in";
        findings.problem(ABOUT, format!("{shown} is no directory"), hint);
        return true;
    }
    if let Err(error) = fs::read_dir(path) {
        let hint = "`chmod go+rx` it, as its owner";
        findings.problem(ABOUT, format!("{shown} can't be read: {error}"), hint);
    } else if metadata.mode() & OTHERS_WRITE != 0 {
        let hint = "`chmod o-w` it: whoever writes there decides what runs on the GPU";
        findings.problem(ABOUT, format!("{shown} may be written to by every user"), hint);
    } else if !is_ours(path) {
        let hint = "make sure that this user is to decide what runs on the GPU";
        findings.warning(ABOUT, format!("{shown} belongs to user {}", metadata.uid()), hint);
    } else {
        findings.ok(ABOUT, shown);
    }
    true
}

/// Whether the path belongs to root or to this user.
pub(super) fn is_ours(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::metadata(path).is_ok_and(|metadata| [0, user].contains(&metadata.uid()))
}
