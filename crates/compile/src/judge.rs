//! Judges a compiler's file accesses: whether its object may be kept, and which files the object
//! depends on.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use gfxpack_launch::{
    self as launch, CompilerRun, Direct, TemplateValues, depfile_paths, searched_twice,
    with_searched,
};
use gfxpack_model::{Digest, Language};
use gfxpack_plan::plan::Job;
use gfxpack_process::watch::{
    InStage, Operation, PathRole, PathRoles, PathState, PathStates, Process, ProcessClass, Record,
    RunDependencies, SHORT_HEAP, WatchError, driver_path_roles, judge_records, tidy_path,
};
use gfxpack_process::{FileError, ProgramEnd, Timestamp};
use gfxpack_toolchain::Toolchain;

use crate::context::{BuildContext, command_of};
use crate::error::CompileError;
use crate::failure_kind::FailureKind;
use crate::nearby_files::file_id_of;
use crate::stage::Stage;
use crate::store::Dependencies;
use crate::validity::name_of;

/// Files that had just changed when a run began, with their content when it ended.
pub(crate) type RecentlyChanged = BTreeSet<(PathBuf, PathState)>;

/// The judgement of a run.
pub(crate) enum Judged {
    /// It has to be run again: files that it looked for have been laid out.
    Again,
    /// It has to be run again, as these files had just changed.
    AgainAfter(RecentlyChanged),
    /// It accessed a path that it may not, so its object can't be used.
    Failed(FailureKind),
    /// All dependencies of the object are known.
    Known(Dependencies),
    /// The dependencies of the object are not known, for this reason; with the known part of those
    /// on its sources.
    Unknown(String, PathStates),
}

/// Judges a run of a job's compiler that was started after `since`.
pub(crate) fn judge(
    context: &BuildContext<'_>,
    job: &Job,
    stage: &Stage,
    paths: &launch::RunPaths<'_>,
    run: &CompilerRun,
    since: Timestamp,
    before: &RecentlyChanged,
) -> Result<Judged, CompileError> {
    let records: Result<Vec<&Record>, &WatchError> =
        run.records.iter().map(Result::as_ref).collect();
    let records = match records {
        Ok(records) => records,
        Err(reason) => return Ok(Judged::Unknown(reason.to_string(), PathStates::default())),
    };
    let own_file_id = |dir: &Path| context.sources.file_id(job.source, dir);
    let twice = records.iter().find_map(|record| searched_twice(record, stage.dir(), own_file_id));
    if let Some(dir) = twice {
        // For a user's compiler they are one directory; in the staged source they are two.
        return Ok(Judged::Failed(FailureKind::Searches(dir)));
    }
    let is_stored = context.sources.is_stored(job.source);
    let direct = context.direct(job);
    let watched = WatchedRun { context, job, stage, paths, run, records, direct };
    let mut accesses = watched.accesses(since, before)?;
    if !watched.has_compiler() {
        return Ok(match accesses.run.writes {
            Some(path) => Judged::Failed(FailureKind::Writes(path)),
            None => Judged::Unknown(WatchError::Nothing.to_string(), PathStates::default()),
        });
    }
    if let Some(judged) = accesses.without_object(context, is_stored) {
        return Ok(judged);
    }
    let same = watched.same_elsewhere(&accesses.sources);
    if let Some((below, path)) = &same {
        // A stored plan does not record which files of this machine its sources are.
        let is_admitted = |dir: &PathBuf| is_below(context, path, dir);
        let may_be_one = is_stored && context.admitted.iter().any(is_admitted);
        if may_be_one || own_file_id(below) == file_id_of(path) {
            let (path, own) = (path.clone(), below.clone());
            return Ok(Judged::Failed(FailureKind::ReadsByOtherName { path, own }));
        }
    }
    let incomplete = watched.incomplete()?;
    let changed =
        accesses.run.changed.take().map(|path| {
            format!("`{}` changed while it was compiled, or just before", path.display())
        });
    let same = same.map(|(below, path)| {
        let (below, path) = (below.display(), path.display());
        format!("`{below}` has the content of `{path}`, and could become that file")
    });
    let sources = stage.path_states(context.sources, accesses.sources);
    if let Some(reason) = incomplete.or(changed).or(same) {
        return Ok(Judged::Unknown(reason, sources));
    }
    let shared = run.read_before.iter().flat_map(|before| before.states.iter().cloned()).collect();
    let commands = Some(context.drivers.name(&command_of(job)));
    let admitted = admitted(context, &accesses.run.states);
    let system = PathStates::new(accesses.run.states, context.file_system);
    Ok(Judged::Known(Dependencies { commands, system, sources, shared, admitted }))
}

/// A run whose records show what the compiler itself accessed.
struct WatchedRun<'a> {
    context: &'a BuildContext<'a>,
    job: &'a Job,
    stage: &'a Stage,
    paths: &'a launch::RunPaths<'a>,
    run: &'a CompilerRun,
    records: Vec<&'a Record>,
    /// The commands that the driver would run, if they are known.
    direct: Option<Direct>,
}

impl WatchedRun<'_> {
    fn toolchain(&self) -> &Toolchain {
        &self.context.toolchains[self.job.toolchain.0]
    }

    /// Whether a compiler ran: a driver may have done its work without starting another program.
    fn has_compiler(&self) -> bool {
        let compiles = |process: &Process| {
            matches!(process.class, ProcessClass::Compiler | ProcessClass::Assembler)
        };
        self.records.iter().any(|record| record.processes.iter().any(compiles))
    }

    /// The run's file accesses, judged.
    fn accesses(
        &self,
        since: Timestamp,
        before: &RecentlyChanged,
    ) -> Result<FileAccesses, CompileError> {
        let Self { context, job, stage, paths, run, records, direct } = self;
        let roles = self.roles();
        let driver =
            driver_path_roles(stage.dir().to_owned(), &context.file_system.real(paths.scratch));
        let of_class = |class| if class == ProcessClass::Other { &driver } else { &roles };
        let records = || records.iter().copied();
        let mut judged = judge_records(records(), of_class, context.file_system, since);
        // It is not known which programs the driver would run, so the object depends on all of
        // them.
        if direct.is_none() && run.by_driver {
            let toolchain = self.toolchain();
            let program = toolchain.program(job.program);
            let covered = toolchain.covered_paths(job.language);
            let counts = |path: &Path| !covered.iter().any(|covered| path.starts_with(covered));
            for record in records() {
                judged.add_programs(record, program, context.file_system, since, counts);
            }
        }
        // A file that did not change between the ends of two runs is the one that the second run
        // read.
        judged.fresh.retain(|file| !before.contains(file));
        let looked_up = mem::take(&mut judged.stage);
        let mut accesses = FileAccesses { run: judged, sources: BTreeSet::new(), again: false };
        for (below, lookup) in looked_up {
            accesses.add(context, stage, below, lookup)?;
        }
        Ok(accesses)
    }

    /// Why the records may lack accesses that the object depends on, if they may.
    fn incomplete(&self) -> Result<Option<String>, CompileError> {
        if let Some(path) = self.unknown_program() {
            return Ok(Some(format!("`{}` is run, and is not of the toolchain", path.display())));
        }
        let is_other = |direct: &Direct| self.run.by_driver && self.is_other_command(direct);
        if self.direct.as_ref().is_some_and(is_other) {
            return Ok(Some("the driver ran other commands than it had listed".to_owned()));
        }
        if let Some(path) = self.listed_unseen()? {
            let path = path.display();
            return Ok(Some(format!("the compiler lists `{path}`, and was not seen to read it")));
        }
        let short_heap = self.records.iter().any(|record| record.heap_was_short);
        Ok(short_heap.then(|| SHORT_HEAP.to_owned()))
    }

    /// A program that no digest covers: one of a job's commands, or a compiler, linker or library that
    /// ran.
    fn unknown_program(&self) -> Option<PathBuf> {
        let known: HashSet<&Path> = self.toolchain().files().iter().map(PathBuf::as_path).collect();
        let file_system = self.context.file_system;
        let is_known =
            |file: &Path| known.contains(file) || known.contains(&*file_system.real(file));
        let compilers = self.records.iter().flat_map(|record| &record.processes);
        let ran = compilers
            .filter(|process| process.class != ProcessClass::Other)
            .flat_map(|process| process.libraries.iter().chain([&process.program]));
        let named = self.direct.iter().flat_map(|(_, commands)| commands.programs());
        let mut all = ran.map(PathBuf::as_path).chain(named);
        all.find(|file| !is_known(file)).map(Path::to_owned)
    }

    /// Whether a driver ran other commands than it had listed. Names of temporary files, which it makes
    /// up, may differ.
    fn is_other_command(&self, (defines, commands): &Direct) -> bool {
        let Self { context, job, paths, run, records, .. } = self;
        let values = TemplateValues {
            input: &context.plan[job.source].main,
            defines,
            output: paths.output,
            deps_file: paths.deps_file,
            scratch: paths.scratch,
        };
        let listed = commands.list.iter().map(|command| command.fill(&values));
        // Programs besides compilers and linkers do not count.
        let counts =
            |args: &Vec<OsString>| ProcessClass::from_arguments(args) != ProcessClass::Other;
        let listed: Vec<Vec<OsString>> = listed.filter(counts).collect();
        let ran = records.iter().flat_map(|record| &record.processes);
        let ran: Vec<_> = ran.filter(|process| process.class != ProcessClass::Other).collect();
        let scratch = paths.scratch.as_os_str().as_encoded_bytes();
        let is_own = |arg: &OsString| arg.as_encoded_bytes().starts_with(scratch);
        let same = |(listed, ran): (&OsString, &OsString)| {
            listed == ran || (is_own(listed) && is_own(ran))
        };
        // A command that fails is the last.
        let complete = listed.len() == ran.len() || !matches!(run.end, ProgramEnd::Exited(0));
        !complete
            || ran.len() > listed.len()
            || listed.iter().zip(&ran).any(|(listed, ran)| {
                let ran = &ran.arguments;
                // The program may be named with or without links.
                listed.len() != ran.len() || !listed.iter().zip(ran).skip(1).all(same)
            })
    }

    /// The directories of a run.
    fn roles(&self) -> PathRoles {
        let Self { context, job, stage, paths, run, records, .. } = self;
        let base = context.path_roles[job.toolchain.0].for_language(job.language);
        let scratch = context.file_system.real(paths.scratch);
        let roles = base.with_stage(stage.dir()).with(PathRole::Scratch, scratch);
        let headers = run.read_before.iter().flat_map(|before| &before.own);
        let roles = roles.with_linked(PathRole::Covered, headers, context.file_system);
        let compilers = records.iter().flat_map(|record| &record.processes);
        let compilers = compilers.filter(|process| process.class == ProcessClass::Compiler);
        with_searched(roles, compilers, context.file_system)
    }

    /// A source file, and a file elsewhere with the same content that was read. Whether they are one
    /// file decides what `#pragma once` does, and this is reproduced and recorded only for files among
    /// the sources.
    fn same_elsewhere(
        &self,
        looked_up: &BTreeSet<(PathBuf, PathState)>,
    ) -> Option<(PathBuf, PathBuf)> {
        let Self { context, stage, run, records, .. } = self;
        let (all, source) = (context.sources, stage.source());
        let digests = all.sources()[source.0].files.iter().map(|file| file.digest);
        let planned = all.files(source).into_iter().zip(digests);
        let planned = planned.map(|((path, bytes), it)| (Path::new(path), it, bytes.len() as u64));
        let looked_for = looked_up.iter().filter_map(|(below, state)| {
            let size = fs::metadata(stage.dir().join(below)).ok()?.len();
            Some((&**below, state.digest()?, size))
        });
        let mut by_size: HashMap<u64, Vec<(&Path, Digest)>> = HashMap::new();
        for (below, digest, size) in planned.chain(looked_for) {
            by_size.entry(size).or_default().push((below, digest));
        }
        by_size.remove(&0);
        let accesses = records.iter().flat_map(|record| &record.accesses);
        let opened = accesses.filter(|access| {
            matches!(access.operation, Operation::Open { .. }) && access.error.is_none()
        });
        let before = run.read_before.iter().flat_map(|before| before.files.iter());
        let read: BTreeSet<&PathBuf> = opened.map(|access| &access.path).chain(before).collect();
        let mut elsewhere = read.into_iter().filter(|path| !path.starts_with(stage.dir()));
        elsewhere.find_map(|path| {
            let size = fs::metadata(path).ok()?.len();
            let candidates = by_size.get(&size)?;
            let digest = context.file_system.digests().digest(path).ok()?;
            let (below, _) = candidates.iter().find(|(_, own)| *own == digest)?;
            Some((below.to_path_buf(), path.clone()))
        })
    }

    /// A file that the compiler lists as read, but that was not seen to be looked up, neither in this
    /// run nor when the precompiled header was made. The list includes files that are only looked up,
    /// those of `__has_embed`.
    fn listed_unseen(&self) -> Result<Option<PathBuf>, CompileError> {
        let Self { job, stage, paths, run, records, .. } = self;
        if job.language == Language::Assembly {
            return Ok(None);
        }
        let listed = match fs::read(paths.deps_file) {
            Ok(text) => depfile_paths(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::io("read", paths.deps_file)(error).into()),
        };
        let accesses = records.iter().flat_map(|record| &record.accesses);
        let found = accesses.filter(|access| access.file.is_some());
        // Source: LLVM, `llvm/lib/Support/Path.cpp`, `native`, by which clang lists
        // `\` in a name as `/`.
        fn listed_as(path: &Path) -> Cow<'_, Path> {
            match path.to_str() {
                Some(name) if name.contains('\\') => PathBuf::from(name.replace('\\', "/")).into(),
                _ => path.into(),
            }
        }
        let looked_up: HashSet<Cow<'_, Path>> =
            found.map(|access| listed_as(&access.path)).collect();
        let precompiled = run.read_before.as_ref();
        let is_seen = |path: &PathBuf| {
            looked_up.contains(&listed_as(path))
                || precompiled.is_some_and(|before| before.files.contains(path))
        };
        Ok(listed.into_iter().map(|path| stage.dir().join(path)).find(|path| !is_seen(path)))
    }
}

/// Names of the directories that the user admitted and from which the compiler read files or names.
fn admitted(context: &BuildContext<'_>, read: &BTreeSet<(PathBuf, PathState)>) -> Vec<Digest> {
    let counts = |state: &PathState| {
        !matches!(state, PathState::Absent | PathState::Directory | PathState::LinkedDirectory(_))
    };
    let is_read = |dir: &&PathBuf| {
        read.iter().any(|(path, state)| counts(state) && is_below(context, path, dir))
    };
    let dirs = context.admitted.iter().filter(is_read);
    dirs.map(|dir| name_of(&context.file_system.real(dir))).collect()
}

/// Whether a path lies below a directory, either as it is written or with links resolved.
fn is_below(context: &BuildContext<'_>, path: &Path, dir: &Path) -> bool {
    let (real, real_dir) = (context.file_system.real(path), context.file_system.real(dir));
    [path, &*real].iter().any(|path| path.starts_with(dir) || path.starts_with(&*real_dir))
}

/// The file accesses of a run.
struct FileAccesses {
    /// Those outside of the sources.
    run: RunDependencies,
    sources: BTreeSet<(PathBuf, PathState)>,
    /// Whether files that the compiler did not find exist now.
    again: bool,
}

impl FileAccesses {
    /// The judgement of a run without a usable object. `is_stored` says whether the sources come
    /// from a stored plan.
    fn without_object(&mut self, context: &BuildContext<'_>, is_stored: bool) -> Option<Judged> {
        let fresh = mem::take(&mut self.run.fresh);
        let reads = |path: PathBuf| {
            if path.is_relative() && is_stored {
                FailureKind::NotInPlan(path)
            } else if path.is_absolute() && context.file_system.leads_to_proc(&path) {
                FailureKind::ReadsProc(path)
            } else {
                FailureKind::Reads(path)
            }
        };
        let failed = self.run.writes.take().map(FailureKind::Writes);
        let failed = failed.or_else(|| self.run.reads.take().map(reads));
        let failed = failed.or_else(|| self.run.lists.take().map(FailureKind::ListsSources));
        let again = self.again.then_some(Judged::Again).or(failed.map(Judged::Failed));
        again.or_else(|| (!fresh.is_empty()).then_some(Judged::AgainAfter(fresh)))
    }

    /// Handles a path in the directory of the sources.
    fn add(
        &mut self,
        context: &BuildContext<'_>,
        stage: &Stage,
        below: PathBuf,
        lookup: InStage,
    ) -> Result<(), CompileError> {
        let laid_out = || stage.found(context.sources, &below);
        if let Some(state) = lookup.found.then(laid_out).flatten() {
            // `..` may lead elsewhere here than among the sources. A directory is judged by its
            // entries.
            let is_other = stage.is_other(context.sources, &below);
            let exists = || context.sources.file_id(stage.source(), &below).is_some();
            if is_other && !state.is_directory() {
                self.run.reads.get_or_insert(below.clone());
            } else if !(is_other && exists()) {
                self.sources.insert((below.clone(), state));
            }
        }
        if lookup.absent { self.add_absent(context, stage, below, lookup.found) } else { Ok(()) }
    }

    /// Handles a path that did not exist when the compiler looked for it.
    fn add_absent(
        &mut self,
        context: &BuildContext<'_>,
        stage: &Stage,
        below: PathBuf,
        found: bool,
    ) -> Result<(), CompileError> {
        match context.sources.path_state(stage.source(), &below, context.file_system.digests()) {
            // It was created while the compiler ran.
            PathState::Absent if found => self.again = true,
            PathState::Absent => drop(self.sources.insert((below, PathState::Absent))),
            // Only files and directories can be laid out.
            PathState::Other => drop(self.run.reads.get_or_insert(below)),
            // A directory on the way to a file is judged by its entries.
            state
                if tidy_path(&below).starts_with("..")
                    && context.sources.without_parents(stage.source(), &below).is_none() =>
            {
                let tidy = tidy_path(&below);
                if state == PathState::Directory && stage.add_above(&tidy)? {
                    self.again = true;
                } else {
                    self.run.reads.get_or_insert(tidy);
                }
            }
            _ if stage.add(context.sources, &below)? => self.again = true,
            _ => drop(self.run.reads.get_or_insert(below)),
        }
        Ok(())
    }
}
