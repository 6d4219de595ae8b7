//! What an ask means for what was made, by where the path lies: the whole
//! table, as a pure function.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::{Ask, What};

/// Where things lie, for one run. Directories are absolute and without links;
/// what lies deeper decides.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Where the sources were laid out. All of it was hashed.
    pub stage: PathBuf,
    /// What may be written: scratch directories and the output's own.
    pub scratch: Vec<PathBuf>,
    /// What the toolchain's digest covers: files, or directories as a whole.
    pub toolchain: Vec<PathBuf>,
    /// What was made before with a record of its own: precompiled headers.
    pub precompiled: Vec<PathBuf>,
    /// The system's headers and libraries.
    pub system: Vec<PathBuf>,
    /// What the user admitted.
    pub admitted: Vec<PathBuf>,
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
    /// There was nothing in the stage, at the path below it: what lies there
    /// among the sources would have been read.
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
    /// That, and what a link holds.
    Readlink,
    /// Anything.
    Any,
}

/// Paths below /proc, /sys and /dev that compilers look at, and what of it
/// says nothing that could reach an object. All else there is a file like any
/// other, and what the loader and the C library ask for themselves is not in a
/// record at all.
///
/// Source: llvm-project, `llvm/lib/Support/Unix/Path.inc`: `getMainExecutable`
/// reads `/proc/self/exe`, `openFileForRead` where a descriptor leads.
const HARMLESS: [(&str, Harmless); 5] = [
    ("/dev/null", Harmless::Any),
    ("/proc/self/exe", Harmless::Readlink),
    ("/proc/self/fd", Harmless::Look),
    ("/proc/self/fd/*", Harmless::Readlink),
    ("/proc", Harmless::Look),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Stage,
    Scratch,
    Toolchain,
    Precompiled,
    System,
    Admitted,
    Outside,
}

impl Places {
    /// What an ask means. `real` is what its path leads to without links, by
    /// whoever can look: for a path that is absent, the name below what is
    /// there of it.
    ///
    /// A file that was opened tells itself where it lies, and is believed.
    #[must_use]
    pub fn judge(&self, ask: &Ask, real: &Path) -> Vec<Judgement> {
        if is_harmless(ask) {
            return vec![Judgement::Nothing];
        }
        let real = match &ask.what {
            What::Open { real: Some(opened), .. } => opened,
            _ => real,
        };
        if ask.what.writes() {
            let mut written = vec![self.written(&ask.path, real)];
            match &ask.what {
                // What is written by one name of a file is written to all.
                What::Rename(other) | What::Link(other) => {
                    written.push(self.written(other, &tidy(other)));
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
        match self.place(real) {
            Place::Stage if ask.is_absent() => {
                let below = real.strip_prefix(&self.stage).unwrap_or(real);
                Judgement::AbsentInStage(below.to_owned())
            }
            Place::Stage | Place::Scratch | Place::Toolchain | Place::Precompiled => {
                Judgement::Nothing
            }
            _ if ask.is_absent() => Judgement::Absent(path()),
            // What may not be read, and what is no regular name, tells nothing
            // but that; it is none of what may be kept.
            Place::Outside if ask.error.is_some() => Judgement::Reads(path()),
            Place::System | Place::Admitted if listed => Judgement::Listing(path()),
            Place::System | Place::Admitted if is_dir => Judgement::Directory(path()),
            Place::System | Place::Admitted => Judgement::Present(path()),
            // That a directory is there, which compilers ask on the way.
            Place::Outside if is_dir && !listed => Judgement::Directory(path()),
            Place::Outside => Judgement::Reads(path()),
        }
    }

    /// Where a path lies that has no links: in whatever holds it most closely.
    fn place(&self, real: &Path) -> Place {
        let lists: [(Place, &[PathBuf]); 6] = [
            (Place::Stage, std::slice::from_ref(&self.stage)),
            (Place::Scratch, &self.scratch),
            (Place::Toolchain, &self.toolchain),
            (Place::Precompiled, &self.precompiled),
            (Place::System, &self.system),
            (Place::Admitted, &self.admitted),
        ];
        let mut held = (0, Place::Outside);
        for (place, dirs) in lists {
            for dir in dirs.iter().filter(|dir| real.starts_with(dir)) {
                // Of equals, the first is the one that asks for least.
                let depth = dir.components().count();
                if depth > held.0 {
                    held = (depth, place);
                }
            }
        }
        held.1
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
                Harmless::Look => looks(&ask.what),
                Harmless::Readlink => looks(&ask.what) || matches!(ask.what, What::Readlink(_)),
            }
    })
}

fn looks(what: &What) -> bool {
    matches!(what, What::Access(_) | What::Stat | What::Lstat)
}

/// A path with `.` and `..` taken back by text, for one without links.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

#[cfg(test)]
mod tests;
