//! Decides what a file access of a compiler means for its object, by the directory of the path: the
//! whole table, as a pure function.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::file_system_cache::PROC;
use super::{FileAccess, FileSystemCache, Operation};
use crate::scratch_dir::ScratchDir;

/// The directories of a run, absolute and without links. The innermost directory of a path decides.
#[derive(Debug, Clone, Default)]
pub struct PathRoles {
    stage: PathBuf,
    dirs: HashMap<PathBuf, PathRole>,
}

/// The judgement of a file access.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Judgement {
    /// Nothing to do: a digest covers the path, or it belongs to this run.
    Nothing,
    /// The path must stay as it is: its kind, its target without links and its content are stored.
    Present(PathBuf),
    /// The directory must exist; its content does not matter.
    Directory(PathBuf),
    /// The directory must contain exactly these names.
    Listing(PathBuf),
    /// Nothing may exist at the path.
    Absent(PathBuf),
    /// The path below the stage exists.
    InStage(PathBuf),
    /// The path below the stage, which may begin with `..`, does not exist. If it exists among the
    /// sources, it would have been read.
    AbsentInStage(PathBuf),
    /// The run read a path that it may not read.
    Reads(PathBuf),
    /// The run listed a directory of its sources, by its path below the stage. Only some files are
    /// staged there.
    ListsStage(PathBuf),
    /// The run wrote, or tried to write, to a path that it may not write to.
    Writes(PathBuf),
}

/// The meaning of a directory or a file, and everything below it, for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathRole {
    /// Covered by a digest: the toolchain's, or that of a shared file with its own record.
    Covered,
    /// Owned by the run, which may write to it.
    Scratch,
    /// Headers and libraries of the system, and paths that the user admitted. Accesses are
    /// recorded.
    Readable,
    /// A directory on the way to another one: it does not matter that it exists. Its content is
    /// outside.
    Passed,
    /// Anything else.
    Outside,
}

impl PathRoles {
    /// A run whose sources are staged in this directory and are all hashed.
    #[must_use]
    pub fn new(stage: PathBuf) -> Self {
        Self { stage, dirs: HashMap::new() }
    }

    /// The same roles for another stage.
    #[must_use]
    pub fn with_stage(&self, stage: &Path) -> Self {
        Self { stage: stage.to_owned(), dirs: self.dirs.clone() }
    }

    /// Sets the meaning of a directory or file; the first one set counts.
    #[must_use]
    pub fn with(mut self, role: PathRole, path: impl Into<PathBuf>) -> Self {
        self.dirs.entry(path.into()).or_insert(role);
        self
    }

    /// The same for several, each by its path as given and without links.
    #[must_use]
    pub fn with_linked<P: AsRef<Path>>(
        self,
        role: PathRole,
        paths: impl IntoIterator<Item = P>,
        file_system: &FileSystemCache<'_>,
    ) -> Self {
        paths.into_iter().fold(self, |roles, path| {
            let path = path.as_ref();
            roles.with(role, path).with(role, file_system.real(path))
        })
    }

    /// Judges an access. `real` is the path without links, as far as it can be found out: for an
    /// absent path, the name below its existing part; for one that leads through `/proc`, any path
    /// in there.
    ///
    /// For an opened file, the path that its descriptor had counts.
    #[must_use]
    pub fn judge(&self, access: &FileAccess, real: &Path) -> Vec<Judgement> {
        if is_harmless(access) {
            return vec![Judgement::Nothing];
        }
        if real.starts_with(PROC)
            && self.role(real) != PathRole::Covered
            && !access.operation.writes()
        {
            return vec![Judgement::Reads(access.path.clone())];
        }
        let real = match &access.operation {
            // A pipe has no absolute path.
            Operation::Open { real: Some(opened), .. } if opened.is_absolute() => opened,
            _ => real,
        };
        if access.operation.writes() {
            let mut written = vec![self.written(&access.path, real)];
            match &access.operation {
                // Writing to a file by one name changes it under all names.
                Operation::Rename(other) | Operation::Link(other) => {
                    written.push(self.written(other, &tidy_path(other)));
                }
                _ => {}
            }
            written.dedup();
            return written;
        }
        vec![self.read(access, real)]
    }

    fn written(&self, named: &Path, real: &Path) -> Judgement {
        match self.role(real) {
            PathRole::Scratch => Judgement::Nothing,
            _ => Judgement::Writes(named.to_owned()),
        }
    }

    fn read(&self, access: &FileAccess, real: &Path) -> Judgement {
        let path = || access.path.clone();
        let is_dir = access.file.is_some_and(|file| file.is_dir());
        let listed = matches!(access.operation, Operation::List);
        let opened = matches!(&access.operation, Operation::Open { real: Some(_), .. });
        if let Some(below) = self.below_stage(&access.path)
            && !(opened && self.below_stage(real).is_none())
        {
            let tidy = tidy_path(&below);
            // `..` is resolved by text, unless a link on the way leads back.
            let leads_back =
                self.below_stage(real).is_some_and(|it| !tidy_path(&it).starts_with(".."));
            let leaves = tidy.starts_with("..") && !leads_back;
            return if access.is_absent() {
                Judgement::AbsentInStage(below)
            } else if listed {
                Judgement::ListsStage(below)
            } else if leaves && is_dir {
                // On the way to a file, whose own access is judged.
                Judgement::Nothing
            } else if leaves {
                Judgement::Reads(tidy)
            } else {
                Judgement::InStage(below)
            };
        }
        let role = match self.role(real) {
            PathRole::Passed if is_dir && !listed && self.dirs.contains_key(real) => {
                PathRole::Covered
            }
            PathRole::Passed => PathRole::Outside,
            // Reached by a link that no digest covers.
            PathRole::Covered if !self.has_name_in(PathRole::Covered, &access.path) => {
                PathRole::Readable
            }
            PathRole::Outside if self.has_name_in(PathRole::Readable, &access.path) => {
                PathRole::Readable
            }
            role => role,
        };
        match role {
            PathRole::Scratch | PathRole::Covered => Judgement::Nothing,
            // The next run has another directory of this kind.
            _ if is_dir && !listed && access.path == real && self.is_of_this_run(real) => {
                Judgement::Nothing
            }
            _ if access.is_absent() => Judgement::Absent(path()),
            // If reading is refused, or the path is no regular one, the result can't be stored as a
            // dependency.
            PathRole::Outside if access.error.is_some() => Judgement::Reads(path()),
            PathRole::Readable if listed => Judgement::Listing(path()),
            PathRole::Readable if is_dir => Judgement::Directory(path()),
            PathRole::Readable => Judgement::Present(path()),
            // Compilers look up directories on the way.
            PathRole::Outside if is_dir && !listed => Judgement::Directory(path()),
            PathRole::Outside | PathRole::Passed => Judgement::Reads(path()),
        }
    }

    /// Whether a directory above the stage was made for this run alone.
    fn is_of_this_run(&self, dir: &Path) -> bool {
        let work_dir = ScratchDir::of_build(&self.stage);
        work_dir.is_some_and(|work_dir| dir.starts_with(work_dir)) && self.stage.starts_with(dir)
    }

    /// The path relative to the stage; `None` if it does not begin there.
    fn below_stage(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.stage).ok()?.components();
        Some(below.filter(|part| *part != Component::CurDir).collect())
    }

    /// The place of a path without links: that of the innermost directory that has one.
    fn role(&self, real: &Path) -> PathRole {
        self.closest(real).map_or(PathRole::Outside, |(_, role)| role)
    }

    /// Whether a path is written as one below such a directory, wherever links on the way lead.
    /// Links in covered directories are hashed. Links lead out of directories of headers if these
    /// are installed as trees of links (GNU Stow, Nix, conda). `..` after a link leads elsewhere,
    /// so paths with `..` do not count.
    fn has_name_in(&self, wanted: PathRole, path: &Path) -> bool {
        self.below_stage(path).is_none()
            && self.closest(path).is_some_and(|(below, role)| {
                role == wanted && !below.components().any(|part| part == Component::ParentDir)
            })
    }

    /// The innermost directory of a path that has a place, and the path relative to it.
    fn closest<'p>(&self, path: &'p Path) -> Option<(&'p Path, PathRole)> {
        path.ancestors().find_map(|dir| Some((path.strip_prefix(dir).ok()?, *self.dirs.get(dir)?)))
    }
}

/// Whether an access to a path below /proc or /dev can't affect an object. All other paths below
/// /proc differ for each process, and may not be accessed; those below /sys and /dev are treated as
/// other files. Accesses of the loader and the C library itself are not recorded.
///
/// Source: llvm-project, `llvm/lib/Support/Unix/Path.inc`: `getMainExecutable`
/// reads `/proc/self/exe`, `openFileForRead` where a descriptor leads.
fn is_harmless(access: &FileAccess) -> bool {
    let only_looks =
        matches!(access.operation, Operation::Access(_) | Operation::Stat | Operation::Lstat);
    let reads_link = matches!(access.operation, Operation::Readlink(_));
    // Without repeated slashes and the like.
    let path: PathBuf = access.path.components().collect();
    match path.to_str().unwrap_or_default() {
        "/dev/null" => true,
        // Every bash tries this, and may have no terminal.
        "/dev/tty" => access.error.is_some(),
        "/proc" | "/proc/self/fd" => only_looks,
        "/proc/self/exe" => only_looks || reads_link,
        other => {
            let descriptor = other.strip_prefix("/proc/self/fd/");
            let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
            reads_link && descriptor.is_some_and(is_number)
        }
    }
}

/// A path with `.` and `..` resolved by text, as if it had no links. A relative result begins with
/// `..` if it leads out of its directory.
#[must_use]
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
