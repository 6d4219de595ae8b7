//! The dependencies of a driver's or script's output: the file accesses of all its processes, and
//! the programs themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::driver::started;
use super::file_system_cache::PROC;
use super::judgement::{self, Judgement};
use super::path_states::PathQuery;
use super::{FileAccess, FileStat, FileSystemCache, Operation, PathState, Record};
use crate::{Identity, Timestamp};

/// The dependencies of a run.
#[derive(Debug, Default)]
pub struct RunDependencies {
    /// The results of its accesses to paths.
    pub states: BTreeSet<(PathBuf, PathState)>,
    /// A path that it read and that the next run has elsewhere, or that has changed since the run
    /// looked at it, so that the run's output can't be used again.
    pub unusable: Option<PathBuf>,
    /// A file that had just changed when the run began, or changed meanwhile.
    pub fresh: Option<PathBuf>,
}

/// Judges the record of a driver or script that was started as `program` in the directory `scratch`
/// after `since`, and may write only there. A file is recorded as it is now, so it must be the one
/// that the run looked at. The recorder must have recorded all accesses
/// ([`RecorderOptions::all`](super::RecorderOptions::all)).
///
/// A record does not contain the paths at which a program's loader looked for libraries; the
/// libraries that it found are among the answers.
pub fn judge_driver_record(
    record: &Record,
    program: &Path,
    scratch: &Path,
    file_system: &FileSystemCache<'_>,
    since: Timestamp,
) -> RunDependencies {
    let mut dependencies = RunDependencies::default();
    // What is written belongs to the run, unless there is no place for it.
    let is_asked = |access: &&FileAccess| !access.operation.writes() || access.is_absent();
    for access in record.accesses.iter().filter(is_asked) {
        let in_proc = file_system.leads_to_proc(&access.path);
        let real = if in_proc { PROC.into() } else { file_system.real(&access.path) };
        let judgement = judgement::judge(access, scratch, &real);
        dependencies.take(judgement, access, file_system, since);
    }
    dependencies.add_modes(record, file_system);
    let programs = started(record, program).into_iter();
    for path in programs.filter(|path| !path.starts_with(scratch)) {
        dependencies.add_program(path, file_system, since);
    }
    dependencies
}

impl RunDependencies {
    /// A path for which the result that the run got is not known, so that the results can't be
    /// stored for other runs.
    pub fn unknown(&self) -> Option<&Path> {
        self.unusable.as_deref().or(self.fresh.as_deref())
    }

    fn take(
        &mut self,
        judgement: Judgement,
        access: &FileAccess,
        file_system: &FileSystemCache<'_>,
        since: Timestamp,
    ) {
        let path = &access.path;
        match judgement {
            Judgement::Nothing => {}
            Judgement::Absent if file_system.is_absent(path) => {
                self.states.insert((file_system.first_absent(path), PathState::Absent));
            }
            Judgement::Reads | Judgement::Absent => {
                self.unusable.get_or_insert_with(|| path.clone());
            }
            Judgement::Found => {
                let link = matches!(access.operation, Operation::Readlink(Some(_)))
                    || (access.operation == Operation::Lstat
                        && access.file.is_some_and(|file| is_link(&file)));
                if !link && matches!(access.operation, Operation::Lstat | Operation::Readlink(_)) {
                    self.no_link(path, file_system);
                }
                let query = if link { PathQuery::Link } else { PathQuery::Content };
                self.found(query, access, file_system, since);
            }
            Judgement::Listing => self.found(PathQuery::Listing, access, file_system, since),
        }
    }

    /// Records an access that found that a path is no link.
    fn no_link(&mut self, path: &Path, file_system: &FileSystemCache<'_>) {
        match file_system.state(path, PathQuery::Link) {
            Some(state @ PathState::NoLink) => drop(self.states.insert((path.to_owned(), state))),
            _ => drop(self.unusable.get_or_insert(path.to_owned())),
        }
    }

    fn found(
        &mut self,
        query: PathQuery,
        access: &FileAccess,
        file_system: &FileSystemCache<'_>,
        since: Timestamp,
    ) {
        let path = access.path.clone();
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
                    self.fresh.get_or_insert_with(|| path.clone());
                }
                self.states.insert((path, state));
            }
            _ => {
                self.unusable.get_or_insert(path);
            }
        }
    }

    /// Adds whether the files that were looked up are executable.
    fn add_modes(&mut self, record: &Record, file_system: &FileSystemCache<'_>) {
        let seen: BTreeSet<&Path> = record
            .accesses
            .iter()
            .filter(|access| sees_mode(access))
            .map(|access| access.path.as_path())
            .collect();
        let files = self.states.iter().filter(|(_, state)| matches!(state, PathState::File { .. }));
        let modes: Vec<_> = files
            .filter(|(path, _)| seen.contains(path.as_path()))
            .filter_map(|(path, _)| {
                Some((path.clone(), file_system.state(path, PathQuery::Executable)?))
            })
            .collect();
        self.states.extend(modes);
    }

    fn add_program(&mut self, path: PathBuf, file_system: &FileSystemCache<'_>, since: Timestamp) {
        match file_system.state(&path, PathQuery::Content) {
            Some(state @ PathState::File { .. }) => {
                // The record does not identify the file, so it must not have changed since.
                let meta = fs::metadata(&path);
                if meta.is_ok_and(|meta| !Identity::from_metadata(&meta).was_settled(since)) {
                    self.fresh.get_or_insert_with(|| path.clone());
                }
                self.states.insert((path, state));
            }
            _ => {
                self.unusable.get_or_insert(path);
            }
        }
    }
}

fn is_link(stat: &FileStat) -> bool {
    stat.mode & 0o170_000 == 0o120_000
}

/// Whether an access shows if a file is executable.
fn sees_mode(access: &FileAccess) -> bool {
    const EXECUTE: u32 = 1;
    match access.operation {
        Operation::Execute => true,
        Operation::Access(mode) => mode & EXECUTE != 0,
        Operation::Stat | Operation::Lstat => access.file.is_some_and(|file| !file.is_dir()),
        _ => false,
    }
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
