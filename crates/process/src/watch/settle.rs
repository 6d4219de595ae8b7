//! Judges all file accesses of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::looks::PROC;
use super::{Answer, Ask, Class, FileState, Judgement, Looks, Places, Query, Record, What};
use crate::Timestamp;

/// The dependencies of a run besides its own sources and the toolchain.
#[derive(Debug, Default)]
pub struct Settled {
    /// The results of its accesses to absolute paths.
    pub answers: BTreeSet<(PathBuf, Answer)>,
    /// Its accesses in the directory of its sources, by relative path.
    pub stage: BTreeMap<PathBuf, InStage>,
    /// A file that it read but may not read.
    pub reads: Option<PathBuf>,
    /// A path that it wrote, or tried to write, but may not.
    pub writes: Option<PathBuf>,
    /// A path that has changed since the run looked at it, so that the run's output can't be used
    /// again.
    pub changed: Option<PathBuf>,
    /// Files that had just changed when the run began, or changed meanwhile, as they are now. If a
    /// later run finds all of them the same after it, it has read them in this state.
    pub fresh: BTreeSet<(PathBuf, Answer)>,
}

impl Settled {
    /// A path for which the result that the run got is not known, so that the results can't be
    /// stored for other runs.
    #[must_use]
    pub fn unknown(&self) -> Option<&Path> {
        let fresh = self.fresh.first().map(|(path, _)| path);
        self.reads.as_ref().or(self.changed.as_ref()).or(fresh).map(PathBuf::as_path)
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

/// Judges a record, with the places for each class of programs. A file is recorded as it is now, so
/// it must be the one that the run looked at. `since` is when the run began.
#[must_use]
pub fn settle<'p>(
    record: &Record,
    places: impl Fn(Class) -> &'p Places,
    looks: &Looks<'_>,
    since: Timestamp,
) -> Settled {
    let mut settled = Settled::default();
    let mut seen = BTreeSet::new();
    for ask in &record.asks {
        let places = places(record.processes[ask.process].class);
        let in_proc = looks.leads_to_proc(&ask.path);
        let real = if in_proc { PROC.into() } else { looks.real(&ask.path) };
        for judgement in places.judge(ask, &real) {
            settled.take(judgement, ask, looks, since, &mut seen);
        }
    }
    settled
}

impl Settled {
    fn take(
        &mut self,
        judgement: Judgement,
        ask: &Ask,
        looks: &Looks<'_>,
        since: Timestamp,
        seen: &mut BTreeSet<(PathBuf, bool)>,
    ) {
        match judgement {
            Judgement::Nothing => {}
            Judgement::Reads(path) => {
                self.reads.get_or_insert(path);
            }
            Judgement::Writes(path) => {
                self.writes.get_or_insert(path);
            }
            Judgement::InStage(below) => self.in_stage(below, true),
            Judgement::AbsentInStage(below) => self.in_stage(below, false),
            Judgement::Absent(path) => {
                if seen.insert((path.clone(), false)) && !looks.absent(&path) {
                    self.changed.get_or_insert(path);
                } else {
                    self.answers.insert((looks.first_absent(&path), Answer::Absent));
                }
            }
            Judgement::Directory(path) | Judgement::Present(path) => {
                let link = matches!(ask.what, What::Readlink(Some(_)))
                    || (ask.what == What::Lstat && ask.file.is_some_and(|file| is_link(&file)));
                if !link && matches!(ask.what, What::Lstat | What::Readlink(_)) {
                    self.no_link(&path, looks);
                }
                let query = if link { Query::Link } else { Query::What };
                self.found(path, query, ask, looks, since);
            }
            Judgement::Listing(path) => self.found(path, Query::Names, ask, looks, since),
        }
    }

    fn in_stage(&mut self, below: PathBuf, found: bool) {
        let asked = self.stage.entry(below).or_default();
        asked.found |= found;
        asked.absent |= !found;
    }

    /// Records an access that found that a path is no link.
    fn no_link(&mut self, path: &Path, looks: &Looks<'_>) {
        match looks.answer(path, Query::Link) {
            Some(answer @ Answer::NoLink) => drop(self.answers.insert((path.to_owned(), answer))),
            _ => drop(self.changed.get_or_insert(path.to_owned())),
        }
    }

    fn found(
        &mut self,
        path: PathBuf,
        query: Query,
        ask: &Ask,
        looks: &Looks<'_>,
        since: Timestamp,
    ) {
        // The target of a link is compared by itself. The state of a directory changes whenever a
        // file is created in it.
        let state = ask.file.filter(|state| match query {
            Query::Link | Query::Executable => false,
            Query::Names => true,
            Query::What => !state.is_dir(),
        });
        let answer = match state {
            Some(state) => looks.same(&path, query, &state, since),
            None => looks.answer(&path, query).map(|answer| (answer, true)),
        };
        match answer {
            Some((answer, rested)) if fits(&answer, ask) => {
                if !rested {
                    self.fresh.insert((path.clone(), answer.clone()));
                }
                self.answers.insert((path, answer));
            }
            _ => {
                self.changed.get_or_insert(path);
            }
        }
    }
}

fn is_link(state: &FileState) -> bool {
    state.mode & 0o170_000 == 0o120_000
}

/// Whether an access can have had this answer.
fn fits(answer: &Answer, ask: &Ask) -> bool {
    let opened = matches!(&ask.what, What::Open { real: Some(_), .. });
    match answer {
        Answer::Absent => false,
        Answer::Link(now) => match &ask.what {
            What::Readlink(Some(then)) => now == then,
            _ => ask.what == What::Lstat,
        },
        Answer::File { real, .. } => match &ask.what {
            What::Open { real: Some(opened), .. } => {
                real.as_deref().unwrap_or(&ask.path) == opened.as_path()
            }
            // A file that could not be opened was not read. That it is a link is a lasting reason.
            What::Open { .. } => ask.error.is_none_or(|error| error == Errno::LOOP.raw_os_error()),
            _ => ask.error.is_some() || !ask.file.is_some_and(|file| file.is_dir()),
        },
        Answer::Directory | Answer::LinkedDirectory(_) | Answer::Listing(_) => {
            let resolved = match &ask.what {
                What::Realpath(real) => real.as_deref(),
                _ => None,
            };
            let real = match answer {
                Answer::LinkedDirectory(real) => real,
                _ => &ask.path,
            };
            ask.file.is_none_or(|file| file.is_dir())
                && resolved.is_none_or(|resolved| resolved == real)
        }
        // No access has only this answer.
        Answer::Executable(_) | Answer::NoLink => true,
        Answer::Other => !opened,
    }
}

#[cfg(test)]
mod tests;
