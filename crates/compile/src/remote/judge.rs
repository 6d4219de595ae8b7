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
    FileAccess, Judgement, PathQuery, PathRole, PathRoles, PathState, PathStates, Process,
    ProcessClass, RECORD_LIMIT, Record, SHORT_HEAP, tidy_path,
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
    pub(crate) fn judge(&self, record: &[u8]) -> Result<(PathStates, PathStates), Reason> {
        let record = Record::parse(record, RECORD_LIMIT).map_err(|reason| reason.to_string())?;
        if record.heap_was_short {
            return Err(SHORT_HEAP.to_owned());
        }
        let compiles =
            |it: &&Process| matches!(it.class, ProcessClass::Compiler | ProcessClass::Assembler);
        let mut compilers = record.processes.iter().filter(compiles);
        let stage = &compilers.next().ok_or("no compiler recorded its file accesses")?.directory;
        let roles = self.roles(stage, &record);
        let sent: HashMap<&str, Digest> =
            self.root.files.iter().map(|file| (file.path.as_str(), file.digest)).collect();
        let (mut system, mut sources) = (BTreeSet::new(), BTreeSet::new());
        for access in &record.accesses {
            // The sent files lie beside the staged directory.
            let below = access.path.strip_prefix(stage).ok();
            let left = below.map(tidy_path).filter(|below| below.starts_with(".."));
            let access = match left {
                // The worker has no files of the directories above the sources.
                Some(left) if access.is_absent() && !is_sent(&left) => {
                    let below = below.unwrap_or(&access.path).to_owned();
                    let absent = Judgement::AbsentInStage(below);
                    self.take(absent, stage, &sent, &mut system, &mut sources)?;
                    continue;
                }
                // The directory of the sources has another name on the worker.
                Some(left) if !is_sent(&left) && !access.file.is_some_and(|it| it.is_dir()) => {
                    return Err(reason_for(&left, "was another file there"));
                }
                Some(_) => FileAccess { path: tidy_path(&access.path), ..access.clone() },
                None => access.clone(),
            };
            let real = access.path.clone();
            for judgement in roles.judge(&access, &real) {
                self.take(judgement, stage, &sent, &mut system, &mut sources)?;
            }
        }
        let read: HashSet<Digest> = system.iter().filter_map(|(_, it)| it.digest()).collect();
        let system = PathStates::new(system, self.context.file_system);
        let place = |below: &Path| self.context.sources.file_id(self.job.source, below);
        let sources = PathStates::of_relative(sources, place);
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
    fn roles(&self, stage: &Path, record: &Record) -> PathRoles {
        let roles = PathRoles::new(stage.to_owned())
            .with(PathRole::Scratch, stage.join(SCRATCH))
            .with(PathRole::Covered, stage.with_file_name(SENT))
            .with(PathRole::Readable, tidy_path(&stage.join(SYSTEM)));
        if self.toolchain == ToolchainSource::Sent {
            return roles;
        }
        let file_system = self.context.file_system;
        let toolchain = &self.context.toolchains[self.job.toolchain.0];
        let covered = toolchain.covered_paths(self.job.language);
        let roles = roles.with_linked(PathRole::Covered, covered, file_system);
        with_searched(roles, &record.processes, file_system)
    }

    fn take(
        &self,
        judgement: Judgement,
        stage: &Path,
        sent: &HashMap<&str, Digest>,
        system: &mut BTreeSet<(PathBuf, PathState)>,
        sources: &mut BTreeSet<(PathBuf, PathState)>,
    ) -> Result<(), Reason> {
        let file_system = self.context.file_system;
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
                    sources.insert((below, PathState::Directory));
                }
            }
            Judgement::AbsentInStage(below) => {
                match self.context.sources.path_state(
                    self.job.source,
                    &below,
                    file_system.digests(),
                ) {
                    PathState::Absent => drop(sources.insert((below, PathState::Absent))),
                    _ => return Err(reason_for(&below, "was not sent")),
                }
            }
            Judgement::Absent(path) => {
                let (path, _) = here(&path);
                if !file_system.is_absent(&path) {
                    return Err(reason_for(&path, "is here and was not there"));
                }
                system.insert((file_system.first_absent(&path), PathState::Absent));
            }
            Judgement::Directory(path) => {
                let (path, _) = here(&path);
                match file_system.state(&path, PathQuery::Content).filter(PathState::is_directory) {
                    Some(state) => drop(system.insert((path, state))),
                    None => return Err(reason_for(&path, "is no directory here")),
                }
            }
            Judgement::Present(path) => {
                let (path, was_sent) = here(&path);
                let state = self.present(&path, sent, was_sent)?;
                system.insert((path, state));
            }
            Judgement::Listing(path)
            | Judgement::ListsStage(path)
            | Judgement::Reads(path)
            | Judgement::Writes(path) => {
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
    ) -> Result<PathState, Reason> {
        let file_system = self.context.file_system;
        let Some(state @ PathState::File { digest, .. }) =
            file_system.state(path, PathQuery::Content)
        else {
            return Err(reason_for(path, "is not here"));
        };
        let name = format!("{HEADERS}{}", path.display());
        if was_sent && sent.get(name.as_str()) != Some(&digest)
            || !file_system.was_settled(path, self.since)
        {
            return Err(reason_for(path, "has changed"));
        }
        Ok(state)
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
