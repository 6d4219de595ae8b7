//! Judges all file accesses of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::file_system_cache::PROC;
use super::{
    FileAccess, FileStat, FileSystemCache, Judgement, Operation, PathQuery, PathRoles, PathState,
    ProcessClass, Record,
};
use crate::Timestamp;

/// The dependencies of a run besides its own sources and the toolchain.
#[derive(Debug, Default)]
pub struct RunDependencies {
    /// The results of its accesses to absolute paths.
    pub states: BTreeSet<(PathBuf, PathState)>,
    /// Its accesses in the directory of its sources, by relative path.
    pub stage: BTreeMap<PathBuf, InStage>,
    /// A file that it read but may not read.
    pub reads: Option<PathBuf>,
    /// A directory of its sources that it listed, by relative path. It may not, as only some of the
    /// files are there.
    pub lists: Option<PathBuf>,
    /// A path that it wrote, or tried to write, but may not.
    pub writes: Option<PathBuf>,
    /// A path that has changed since the run looked at it, so that the run's output can't be used
    /// again.
    pub changed: Option<PathBuf>,
    /// Files that had just changed when the run began, or changed meanwhile, as they are now. If a
    /// later run finds all of them the same after it, it has read them in this state.
    pub fresh: BTreeSet<(PathBuf, PathState)>,
}

impl RunDependencies {
    /// A path for which the result that the run got is not known, so that the results can't be
    /// stored for other runs.
    #[must_use]
    pub fn unknown(&self) -> Option<&Path> {
        let fresh = self.fresh.first().map(|(path, _)| path);
        let forbidden = self.reads.as_ref().or(self.lists.as_ref());
        forbidden.or(self.changed.as_ref()).or(fresh).map(PathBuf::as_path)
    }
}

/// Whether a path existed when it was looked up, possibly several times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InStage {
    /// It existed at least once.
    pub found: bool,
    /// It did not exist at least once.
    pub absent: bool,
}

/// Judges the records of a run, with the roles for each class of programs. A file is recorded as it
/// is now, so it must be the one that the run looked at. `since` is when the run began.
#[must_use]
pub fn judge_records<'p, 'r>(
    records: impl IntoIterator<Item = &'r Record>,
    roles: impl Fn(ProcessClass) -> &'p PathRoles,
    file_system: &FileSystemCache<'_>,
    since: Timestamp,
) -> RunDependencies {
    let mut dependencies = RunDependencies::default();
    for record in records {
        for access in &record.accesses {
            let roles = roles(record.processes[access.process].class);
            let in_proc = file_system.leads_to_proc(&access.path);
            let real = if in_proc { PROC.into() } else { file_system.real(&access.path) };
            for judgement in roles.judge(access, &real) {
                dependencies.take(judgement, access, file_system, since);
            }
        }
    }
    dependencies
}

impl RunDependencies {
    fn take(
        &mut self,
        judgement: Judgement,
        access: &FileAccess,
        file_system: &FileSystemCache<'_>,
        since: Timestamp,
    ) {
        match judgement {
            Judgement::Nothing => {}
            Judgement::Reads(path) => {
                self.reads.get_or_insert(path);
            }
            Judgement::ListsStage(below) => {
                self.lists.get_or_insert(below);
            }
            Judgement::Writes(path) => {
                self.writes.get_or_insert(path);
            }
            Judgement::InStage(below) => self.in_stage(below, true),
            Judgement::AbsentInStage(below) => self.in_stage(below, false),
            Judgement::Absent(path) => {
                if file_system.is_absent(&path) {
                    self.states.insert((file_system.first_absent(&path), PathState::Absent));
                } else {
                    self.changed.get_or_insert(path);
                }
            }
            Judgement::Directory(path) | Judgement::Present(path) => {
                let link = matches!(access.operation, Operation::Readlink(Some(_)))
                    || (access.operation == Operation::Lstat
                        && access.file.is_some_and(|file| is_link(&file)));
                if !link && matches!(access.operation, Operation::Lstat | Operation::Readlink(_)) {
                    self.no_link(&path, file_system);
                }
                let query = if link { PathQuery::Link } else { PathQuery::Content };
                self.found(path, query, access, file_system, since);
            }
            Judgement::Listing(path) => {
                self.found(path, PathQuery::Listing, access, file_system, since)
            }
        }
    }

    fn in_stage(&mut self, below: PathBuf, found: bool) {
        let lookup = self.stage.entry(below).or_default();
        lookup.found |= found;
        lookup.absent |= !found;
    }

    /// Records an access that found that a path is no link.
    fn no_link(&mut self, path: &Path, file_system: &FileSystemCache<'_>) {
        match file_system.state(path, PathQuery::Link) {
            Some(state @ PathState::NoLink) => drop(self.states.insert((path.to_owned(), state))),
            _ => drop(self.changed.get_or_insert(path.to_owned())),
        }
    }

    fn found(
        &mut self,
        path: PathBuf,
        query: PathQuery,
        access: &FileAccess,
        file_system: &FileSystemCache<'_>,
        since: Timestamp,
    ) {
        // The target of a link is compared by itself. The state of a directory changes whenever a
        // file is created in it.
        let stat = access.file.filter(|stat| match query {
            PathQuery::Link | PathQuery::Executable => false,
            PathQuery::Listing => true,
            PathQuery::Content => !stat.is_dir(),
        });
        let state = match stat {
            Some(stat) => file_system.state_if_same(&path, query, &stat, since),
            None => file_system.state(&path, query).map(|state| (state, true)),
        };
        match state {
            Some((state, rested)) if fits(&state, access) => {
                if !rested {
                    self.fresh.insert((path.clone(), state.clone()));
                }
                self.states.insert((path, state));
            }
            _ => {
                self.changed.get_or_insert(path);
            }
        }
    }
}

fn is_link(stat: &FileStat) -> bool {
    stat.mode & 0o170_000 == 0o120_000
}

/// Whether an access can have had this answer.
fn fits(state: &PathState, access: &FileAccess) -> bool {
    let opened = matches!(&access.operation, Operation::Open { real: Some(_), .. });
    match state {
        PathState::Absent => false,
        PathState::Link(now) => match &access.operation {
            Operation::Readlink(Some(then)) => now == then,
            _ => access.operation == Operation::Lstat,
        },
        PathState::File { real, .. } => match &access.operation {
            Operation::Open { real: Some(opened), .. } => {
                real.as_deref().unwrap_or(&access.path) == opened.as_path()
            }
            // A file that could not be opened was not read. That it is a link is a lasting reason.
            Operation::Open { .. } => {
                access.error.is_none_or(|error| error == Errno::LOOP.raw_os_error())
            }
            _ => access.error.is_some() || !access.file.is_some_and(|file| file.is_dir()),
        },
        PathState::Directory | PathState::LinkedDirectory(_) | PathState::Listing(_) => {
            let resolved = match &access.operation {
                Operation::Realpath(real) => real.as_deref(),
                _ => None,
            };
            let real = match state {
                PathState::LinkedDirectory(real) => real,
                _ => &access.path,
            };
            access.file.is_none_or(|file| file.is_dir())
                && resolved.is_none_or(|resolved| resolved == real)
        }
        // No access has only this answer.
        PathState::Executable(_) | PathState::NoLink => true,
        PathState::Other => !opened,
    }
}

#[cfg(test)]
mod tests;
