//! Compares the file accesses of a remote compiler with the files of this machine.
//!
//! The object is taken only if each access would have had the same result here: each file that was
//! read is here, with the content that was sent, and each file that was not found is not here
//! either.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use gfxpack_launch::with_searched;
use gfxpack_model::Digest;
use gfxpack_plan::plan::{Job, StagedFile};
use gfxpack_process::Timestamp;
use gfxpack_process::watch::{
    Answer, Answers, Ask, Class, Judgement, Place, Places, Process, Query, RECORD_LIMIT, Record,
    SHORT_HEAP, tidy_path,
};

use super::action::{HEADERS, SCRATCH, SENT, SYSTEM};
use super::workers::{InputRoot, ToolchainSource};
use crate::context::BuildContext;

/// A job that ran on a remote worker.
pub(crate) struct RemoteRun<'a> {
    pub(crate) context: &'a BuildContext<'a>,
    pub(crate) job: &'a Job,
    /// The files that were sent.
    pub(crate) root: &'a InputRoot,
    pub(crate) toolchain: ToolchainSource,
    /// A time before any file was read to be sent.
    pub(crate) since: Timestamp,
}

/// Why an object is not taken, as text.
type Reason = String;

impl RemoteRun<'_> {
    /// The object's dependencies on this machine: on the system, and on the sources.
    pub(crate) fn judge(&self, record: &[u8]) -> Result<(Answers, Answers), Reason> {
        let record = Record::parse(record, RECORD_LIMIT).map_err(|reason| reason.to_string())?;
        if record.heap_was_short {
            return Err(SHORT_HEAP.to_owned());
        }
        let compiles = |it: &&Process| matches!(it.class, Class::Compiler | Class::Assembler);
        let mut compilers = record.processes.iter().filter(compiles);
        let stage = &compilers.next().ok_or("no compiler recorded its file accesses")?.directory;
        let places = self.places(stage, &record);
        let sent: HashMap<&str, Digest> =
            self.root.files.iter().map(|file| (file.path.as_str(), file.digest)).collect();
        let (mut system, mut sources) = (BTreeSet::new(), BTreeSet::new());
        for ask in &record.asks {
            // The sent files lie beside the staged directory.
            let below = ask.path.strip_prefix(stage).ok();
            let left = below.map(tidy_path).filter(|below| below.starts_with(".."));
            let ask = match left {
                // The worker has no files of the directories above the sources.
                Some(left) if ask.is_absent() && !is_sent(&left) => {
                    let below = below.unwrap_or(&ask.path).to_owned();
                    let absent = Judgement::AbsentInStage(below);
                    self.take(absent, stage, &sent, &mut system, &mut sources)?;
                    continue;
                }
                // The directory of the sources has another name on the worker.
                Some(left) if !is_sent(&left) && !ask.file.is_some_and(|it| it.is_dir()) => {
                    return Err(reason_for(&left, "was another file there"));
                }
                Some(_) => Ask { path: tidy_path(&ask.path), ..ask.clone() },
                None => ask.clone(),
            };
            let real = ask.path.clone();
            for judgement in places.judge(&ask, &real) {
                self.take(judgement, stage, &sent, &mut system, &mut sources)?;
            }
        }
        let read: HashSet<Digest> = system.iter().filter_map(|(_, it)| it.digest()).collect();
        let system = Answers::new(system, self.context.looks);
        let place = |below: &Path| self.context.sources.place(self.job.source, below);
        let sources = Answers::of_relative(sources, place);
        let is_sent = self.toolchain == ToolchainSource::Sent;
        let toolchain = &self.context.toolchains[self.job.toolchain.0];
        let is_elsewhere = |own: &StagedFile| {
            own.digest != Digest::of(&[])
                && (read.contains(&own.digest) || !is_sent && toolchain.has_content(own.digest))
        };
        let copied = self.context.plan[self.job.source].files.iter().any(is_elsewhere);
        if sources.have_same() || is_sent && system.have_same() || copied {
            return Err("the worker can't tell which names are one file".to_owned());
        }
        Ok((system, sources))
    }

    /// The directories on the worker.
    fn places(&self, stage: &Path, record: &Record) -> Places {
        let places = Places::new(stage.to_owned())
            .with(Place::Scratch, stage.join(SCRATCH))
            .with(Place::Covered, stage.with_file_name(SENT))
            .with(Place::Readable, tidy_path(&stage.join(SYSTEM)));
        if self.toolchain == ToolchainSource::Sent {
            return places;
        }
        let looks = self.context.looks;
        let covered =
            self.context.toolchains[self.job.toolchain.0].covered_paths(self.job.language);
        let cover = |all: Places, path: &PathBuf| all.with_linked(Place::Covered, path, looks);
        let places = covered.iter().fold(places, cover);
        with_searched(places, &record.processes, looks)
    }

    fn take(
        &self,
        judgement: Judgement,
        stage: &Path,
        sent: &HashMap<&str, Digest>,
        system: &mut BTreeSet<(PathBuf, Answer)>,
        sources: &mut BTreeSet<(PathBuf, Answer)>,
    ) -> Result<(), Reason> {
        let looks = self.context.looks;
        let top = tidy_path(&stage.join(SYSTEM));
        // The path on this machine, and whether it was sent.
        let here = |path: &Path| match path.strip_prefix(&top) {
            Ok(below) => (Path::new("/").join(below), true),
            Err(_) => (path.to_owned(), false),
        };
        match judgement {
            Judgement::Nothing => {}
            Judgement::InStage(below) => {
                let (all, source) = (self.context.sources, self.job.source);
                // Links between directories are not sent.
                if !all.leads_by_text(source, &below) {
                    return Err(reason_for(&below, "was another file there"));
                }
                if all.staged(source, &below).is_none() && all.origin(source).is_dir(&below) {
                    sources.insert((below, Answer::Directory));
                }
            }
            Judgement::AbsentInStage(below) => {
                match self.context.sources.answer(self.job.source, &below, looks.digests()) {
                    Answer::Absent => drop(sources.insert((below, Answer::Absent))),
                    _ => return Err(reason_for(&below, "was not sent")),
                }
            }
            Judgement::Absent(path) => {
                let (path, _) = here(&path);
                if !looks.absent(&path) {
                    return Err(reason_for(&path, "is here and was not there"));
                }
                system.insert((looks.first_absent(&path), Answer::Absent));
            }
            Judgement::Directory(path) => {
                let (path, _) = here(&path);
                match looks.answer(&path, Query::What).filter(Answer::is_directory) {
                    Some(answer) => drop(system.insert((path, answer))),
                    None => return Err(reason_for(&path, "is no directory here")),
                }
            }
            Judgement::Present(path) => {
                let (path, was_sent) = here(&path);
                let answer = self.present(&path, sent, was_sent)?;
                system.insert((path, answer));
            }
            Judgement::Listing(path) | Judgement::Reads(path) | Judgement::Writes(path) => {
                return Err(reason_for(&path, "was touched there"));
            }
        }
        Ok(())
    }

    /// A file that was read on the worker, if it is the same here.
    fn present(
        &self,
        path: &Path,
        sent: &HashMap<&str, Digest>,
        was_sent: bool,
    ) -> Result<Answer, Reason> {
        let looks = self.context.looks;
        let Some(answer @ Answer::File { digest, .. }) = looks.answer(path, Query::What) else {
            return Err(reason_for(path, "is not here"));
        };
        let name = format!("{HEADERS}{}", path.display());
        if was_sent && sent.get(name.as_str()) != Some(&digest) || !looks.rested(path, self.since) {
            return Err(reason_for(path, "has changed"));
        }
        Ok(answer)
    }
}

fn reason_for(path: &Path, what: &str) -> Reason {
    format!("`{}` {what}", path.display())
}

/// Whether a path, relative to the staged directory, lies where everything besides the sources was
/// sent to.
fn is_sent(below: &Path) -> bool {
    below.starts_with(Path::new("..").join(SENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_beside_the_sources_is_not_taken_for_a_sent_one() {
        let sent = |path: &str| is_sent(&tidy_path(Path::new(path)));
        assert!(sent("../gfxpack-sent/lib/libc.so.6") && sent(&format!("{SYSTEM}/usr/include")));
        for dir in ["bin", "lib", "files", "sys"] {
            assert!(!sent(&format!("../{dir}/x.h")) && !sent(&format!("a/../../{dir}/x.h")));
        }
    }
}
