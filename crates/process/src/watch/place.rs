//! What a file access of a compiler means for its object, by the directory that
//! the path lies in: the whole table, as a pure function.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::looks::PROC;
use super::{Ask, Looks, What};

/// Where things lie, for one run. Directories are absolute and without links;
/// what lies deeper decides.
#[derive(Debug, Clone, Default)]
pub struct Places {
    stage: PathBuf,
    dirs: HashMap<PathBuf, Place>,
}

/// What is to be done with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Judgement {
    /// Nothing: a digest covers it already, or it is this run's own.
    Nothing,
    /// The path must be what it is: its kind, what it is without links and
    /// its contents are kept.
    Present(PathBuf),
    /// The directory must be there, whatever is in it.
    Directory(PathBuf),
    /// The directory must have these very names in it.
    Listing(PathBuf),
    /// There must be nothing.
    Absent(PathBuf),
    /// Something is in the stage at this path below it.
    InStage(PathBuf),
    /// There was nothing in the stage at this path below it, which may begin
    /// with `..`: what lies there among the sources would have been read.
    AbsentInStage(PathBuf),
    /// The run read what it may not.
    Reads(PathBuf),
    /// The run wrote, or tried to, where it may not.
    Writes(PathBuf),
}

/// Which asks of a path of the system's own are of no matter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Harmless {
    /// Whether it is there.
    Look,
    /// What a link holds.
    Readlink,
    /// Anything that fails.
    Failure,
    /// Anything.
    Any,
}

/// Paths below /proc, /sys and /dev that compilers look at, and what of it
/// says nothing that could reach an object. All else below /proc is each
/// process's own, and may not be asked for; the rest is files like any other.
/// What the loader and the C library ask for themselves is not in a record at
/// all.
///
/// Source: llvm-project, `llvm/lib/Support/Unix/Path.inc`: `getMainExecutable`
/// reads `/proc/self/exe`, `openFileForRead` where a descriptor leads.
const HARMLESS: [(&str, Harmless); 7] = [
    ("/dev/null", Harmless::Any),
    // Tried by every bash, which may well have no terminal.
    ("/dev/tty", Harmless::Failure),
    ("/proc/self/exe", Harmless::Look),
    ("/proc/self/exe", Harmless::Readlink),
    ("/proc/self/fd", Harmless::Look),
    ("/proc/self/fd/*", Harmless::Readlink),
    ("/proc", Harmless::Look),
];

/// What a directory or a file is to a run, with all that is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Covered by a digest: the toolchain's, or that of what was made before
    /// with a record of its own.
    Covered,
    /// A run's own: it may be written.
    Scratch,
    /// The system's headers and libraries, and what the user admitted: read,
    /// and remembered.
    Readable,
    /// A directory on the way to something, that it is there is of no matter.
    /// What lies in it is outside.
    Passed,
    /// Anything else.
    Outside,
}

impl Places {
    /// A run whose sources are laid out in this directory, all of which was
    /// hashed.
    #[must_use]
    pub fn new(stage: PathBuf) -> Self {
        Self { stage, dirs: HashMap::new() }
    }

    /// The same run with sources elsewhere.
    #[must_use]
    pub fn with_stage(&self, stage: &Path) -> Self {
        Self { stage: stage.to_owned(), dirs: self.dirs.clone() }
    }

    /// Says what a directory or file is; what was said first counts.
    #[must_use]
    pub fn with(mut self, place: Place, path: impl Into<PathBuf>) -> Self {
        self.dirs.entry(path.into()).or_insert(place);
        self
    }

    /// Likewise, by its name and by what that is without links.
    #[must_use]
    pub fn with_linked(self, place: Place, path: &Path, looks: &Looks<'_>) -> Self {
        self.with(place, path).with(place, looks.real(path))
    }

    /// What an ask means. `real` is what its path leads to without links, by
    /// whoever can look: for a path that is absent, the name below what is
    /// there of it; for one that leads through `/proc`, anything in that.
    ///
    /// A file that was opened tells itself where it lies, and is believed.
    #[must_use]
    pub fn judge(&self, ask: &Ask, real: &Path) -> Vec<Judgement> {
        if is_harmless(ask) {
            return vec![Judgement::Nothing];
        }
        if real.starts_with(PROC) && self.place(real) != Place::Covered && !ask.what.writes() {
            return vec![Judgement::Reads(ask.path.clone())];
        }
        let real = match &ask.what {
            // A pipe lies nowhere.
            What::Open { real: Some(opened), .. } if opened.is_absolute() => opened,
            _ => real,
        };
        if ask.what.writes() {
            let mut written = vec![self.written(&ask.path, real)];
            match &ask.what {
                // What is written by one name of a file is written to all.
                What::Rename(other) | What::Link(other) => {
                    written.push(self.written(other, &tidy_path(other)));
                }
                _ => {}
            }
            written.dedup();
            return written;
        }
        vec![self.read(ask, real)]
    }

    fn written(&self, named: &Path, real: &Path) -> Judgement {
        match self.place(real) {
            Place::Scratch => Judgement::Nothing,
            _ => Judgement::Writes(named.to_owned()),
        }
    }

    fn read(&self, ask: &Ask, real: &Path) -> Judgement {
        let path = || ask.path.clone();
        let is_dir = ask.file.is_some_and(|file| file.is_dir());
        let listed = matches!(ask.what, What::List);
        let opened = matches!(&ask.what, What::Open { real: Some(_), .. });
        if let Some(below) = self.below_stage(&ask.path)
            && !(opened && self.below_stage(real).is_none())
        {
            let tidy = tidy_path(&below);
            // By text, unless a link is on the way that leads back.
            let leads_back =
                self.below_stage(real).is_some_and(|it| !tidy_path(&it).starts_with(".."));
            let leaves = tidy.starts_with("..") && !leads_back;
            return match () {
                () if ask.is_absent() => Judgement::AbsentInStage(below),
                // Of its names, only some are laid out.
                () if listed => Judgement::Reads(Path::new(".").join(below)),
                // On the way to a file, which is judged by itself.
                () if leaves && is_dir => Judgement::Nothing,
                () if leaves => Judgement::Reads(tidy),
                () => Judgement::InStage(below),
            };
        }
        let place = match self.place(real) {
            Place::Passed if is_dir && !listed && self.dirs.contains_key(real) => Place::Covered,
            Place::Passed => Place::Outside,
            // By a link that no digest covers.
            Place::Covered if !self.has_name_in(Place::Covered, &ask.path) => Place::Readable,
            Place::Outside if self.has_name_in(Place::Readable, &ask.path) => Place::Readable,
            place => place,
        };
        match place {
            Place::Scratch | Place::Covered => Judgement::Nothing,
            // The run itself lies below it.
            _ if is_dir && !listed && ask.path == real && self.stage.starts_with(real) => {
                Judgement::Nothing
            }
            _ if ask.is_absent() => Judgement::Absent(path()),
            // What may not be read, and what is no regular name, tells nothing
            // but that; it is none of what may be kept.
            Place::Outside if ask.error.is_some() => Judgement::Reads(path()),
            Place::Readable if listed => Judgement::Listing(path()),
            Place::Readable if is_dir => Judgement::Directory(path()),
            Place::Readable => Judgement::Present(path()),
            // That a directory is there, which compilers ask on the way.
            Place::Outside if is_dir && !listed => Judgement::Directory(path()),
            Place::Outside | Place::Passed => Judgement::Reads(path()),
        }
    }

    /// A path as seen from the stage; `None` for one that does not begin there.
    fn below_stage(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.stage).ok()?.components();
        Some(below.filter(|part| *part != Component::CurDir).collect())
    }

    /// Where a path lies that has no links: in whatever holds it most closely.
    fn place(&self, real: &Path) -> Place {
        self.closest(real).map_or(Place::Outside, |(_, place)| place)
    }

    /// Whether a path lies in such a directory by its own name, wherever links
    /// on the way lead. Those that a digest covers are hashed; out of directories
    /// of headers they lead wherever trees of links are installed (GNU Stow, Nix,
    /// conda). Above what a link leads to lies something else.
    fn has_name_in(&self, wanted: Place, path: &Path) -> bool {
        self.below_stage(path).is_none()
            && self.closest(path).is_some_and(|(below, place)| {
                place == wanted && !below.components().any(|part| part == Component::ParentDir)
            })
    }

    /// What holds a path most closely, and the path as seen from there.
    fn closest<'p>(&self, path: &'p Path) -> Option<(&'p Path, Place)> {
        path.ancestors().find_map(|dir| Some((path.strip_prefix(dir).ok()?, *self.dirs.get(dir)?)))
    }
}

fn is_harmless(ask: &Ask) -> bool {
    HARMLESS.iter().any(|(pattern, harmless)| {
        let named = match pattern.strip_suffix("/*") {
            None => ask.path == Path::new(pattern),
            Some(dir) => {
                let number = |name: &OsStr| {
                    name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
                };
                ask.path.parent() == Some(Path::new(dir))
                    && ask.path.file_name().is_some_and(number)
            }
        };
        named
            && match harmless {
                Harmless::Any => true,
                Harmless::Failure => ask.error.is_some(),
                Harmless::Look => looks(&ask.what),
                Harmless::Readlink => matches!(ask.what, What::Readlink(_)),
            }
    })
}

fn looks(what: &What) -> bool {
    matches!(what, What::Access(_) | What::Stat | What::Lstat)
}

/// A path with `.` and `..` taken back by text, as if it had no links. What is
/// left of a relative one begins with `..` where it leads out of its directory.
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
