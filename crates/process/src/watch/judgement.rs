//! Decides what a file access of a driver means for its answer, by the path: the whole table, as pure
//! functions.

use std::path::{Component, Path, PathBuf};

use super::{FileAccess, Operation};
use crate::scratch_dir::ScratchDir;

/// Directories with information about the system and its processes, and no files. Programs seed
/// their hash tables with it, and count processors.
const NO_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];
/// A file system in memory below one of these, which holds files like any other.
const FILES: &str = "/dev/shm";

/// The judgement of an access that writes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Nothing to do: the path holds no file, or belongs to this run.
    Nothing,
    /// Nothing may exist at the path.
    Absent,
    /// The path must stay as it is: its kind, its target without links and its content are stored.
    Found,
    /// The directory must contain exactly these names.
    Listing,
    /// The run read what the next one has elsewhere.
    Reads,
}

/// Judges an access of a driver that may write only into `scratch`, in which it runs. `real` is the
/// path without links, as far as it can be found out: for an absent path, the name below its
/// existing part; for one that leads through `/proc`, any path in there.
///
/// For an opened file, the path that its descriptor had counts.
pub(super) fn judge(access: &FileAccess, scratch: &Path, real: &Path) -> Judgement {
    let real = opened(access).unwrap_or(real);
    let is_dir = access.file.is_some_and(|file| file.is_dir());
    let listed = matches!(access.operation, Operation::List);
    let is_opened = matches!(&access.operation, Operation::Open { real: Some(_), .. });
    if let Ok(below) = access.path.strip_prefix(scratch)
        && (!is_opened || real.starts_with(scratch))
    {
        // `..` is resolved by text, unless a link on the way leads back.
        let leads_back =
            real.strip_prefix(scratch).is_ok_and(|it| !tidy_path(it).starts_with(".."));
        let leaves = tidy_path(below).starts_with("..") && !leads_back;
        // A directory is on the way to a file, whose own access is judged.
        let reads = !access.is_absent() && (listed || leaves && !is_dir);
        return if reads { Judgement::Reads } else { Judgement::Nothing };
    }
    // Links from elsewhere may lead to other places in the next run, and `..` may follow a link.
    let has_name_there = || {
        let is_up = |part| part == Component::ParentDir;
        !may_be_file(&access.path) && !access.path.components().any(is_up)
    };
    // The next run has another directory of this kind.
    let is_of_this_run = || is_dir && !listed && access.path == real && is_above_run(real, scratch);
    if real.starts_with(scratch) || !may_be_file(real) && has_name_there() || is_of_this_run() {
        Judgement::Nothing
    } else if access.is_absent() {
        Judgement::Absent
    } else if listed {
        Judgement::Listing
    } else {
        Judgement::Found
    }
}

/// The path without links of an opened file; a pipe has none.
fn opened(access: &FileAccess) -> Option<&Path> {
    match &access.operation {
        Operation::Open { real: Some(opened), .. } if opened.is_absolute() => Some(opened),
        _ => None,
    }
}

/// Whether files like any other may lie at a path.
pub(super) fn may_be_file(path: &Path) -> bool {
    path.starts_with(FILES) || !NO_FILES.iter().any(|dir| path.starts_with(dir))
}

/// Whether a directory above `scratch` was made for this run alone.
fn is_above_run(dir: &Path, scratch: &Path) -> bool {
    let work_dir = ScratchDir::of_build(scratch);
    work_dir.is_some_and(|work_dir| dir.starts_with(work_dir)) && scratch.starts_with(dir)
}

/// A path with `.` and `..` resolved by text, as if it had no links. A relative result begins with
/// `..` if it leads out of its directory.
pub fn tidy_path(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        let is_below = matches!(tidy.components().next_back(), Some(Component::Normal(_)));
        match part {
            Component::CurDir => {}
            Component::ParentDir if is_below => drop(tidy.pop()),
            Component::ParentDir if tidy.has_root() => {}
            other => tidy.push(other),
        }
    }
    tidy
}

#[cfg(test)]
mod tests;
