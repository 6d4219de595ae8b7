//! Judges a compiler's file accesses: whether its object may be kept, and which files the object
//! depends on.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_launch::{
    self as launch, Direct, Run, TemplateValues, depfile_paths, searched_twice, with_searched,
};
use gfxpack_model::{Digest, Language};
use gfxpack_plan::plan::Job;
use gfxpack_process::watch::{
    Answer, Answers, Class, Place, Places, Process, Record, SHORT_HEAP, Settled, Unwatched, What,
    driver_places, settle, tidy_path,
};
use gfxpack_process::{End, FileError, Timestamp};
use gfxpack_toolchain::Toolchain;

use crate::context::{BuildContext, command_of};
use crate::current::name_of;
use crate::error::CompileError;
use crate::failure_kind::FailureKind;
use crate::source_surroundings::place_of;
use crate::stage::Stage;
use crate::store::Dependencies;

/// Files that had just changed when a run began, with their content when it ended.
pub(crate) type Fresh = BTreeSet<(PathBuf, Answer)>;

/// The judgement of a run.
pub(crate) enum Judged {
    /// It has to be run again: files that it looked for have been laid out.
    Again,
    /// It has to be run again, as these files had just changed.
    AgainAfter(Fresh),
    /// It accessed a path that it may not, so its object can't be used.
    Failed(FailureKind),
    /// All dependencies of the object are known.
    Known(Dependencies),
    /// The dependencies of the object are not known, for this reason; with the known part of those
    /// on its sources.
    Unknown(String, Answers),
}

/// Judges a run of a job's compiler that was started after `since`.
pub(crate) fn judge(
    context: &BuildContext<'_>,
    job: &Job,
    stage: &Stage,
    place: &launch::Place<'_>,
    run: &Run,
    since: Timestamp,
    before: &Fresh,
) -> Result<Judged, CompileError> {
    let records = match watched(run) {
        Ok(records) => records,
        Err(reason) => return Ok(Judged::Unknown(reason.to_string(), Answers::default())),
    };
    let toolchain = &context.toolchains[job.toolchain.0];
    let own_place = |dir: &Path| context.sources.place(job.source, dir);
    let twice = records.iter().find_map(|record| searched_twice(record, stage.dir(), own_place));
    if let Some(dir) = twice {
        // For a user's compiler they are one directory; in the staged source they are two.
        return Ok(Judged::Failed(FailureKind::Searches(dir)));
    }
    let is_stored = context.sources.is_stored(job.source);
    let direct = context.direct(job);
    let places = places(context, job, stage, place, run, &records);
    let driver = driver_places(stage.dir().to_owned(), &context.looks.real(place.scratch));
    let of_class = |class| if class == Class::Other { &driver } else { &places };
    let mut asked = FileAccesses::default();
    for record in &records {
        let mut settled = settle(record, of_class, context.looks, since);
        // It is not known which programs the driver would run, so the object depends on all of
        // them.
        if direct.is_none() && run.by_driver {
            let program = toolchain.program(job.program);
            let covered = toolchain.covered_paths(job.language);
            let counts = |path: &Path| !covered.iter().any(|covered| path.starts_with(covered));
            settled.add_programs(record, program, context.looks, since, counts);
        }
        asked.take(context, stage, settled, before)?;
    }
    if let Some(judged) = asked.without_object(is_stored) {
        return Ok(judged);
    }
    let same = same_elsewhere(context, stage, &asked.sources, run, &records);
    if let Some((below, path)) = &same {
        // A stored plan does not record which files of this machine its sources are.
        let is_admitted = |dir: &PathBuf| is_below(context, path, dir);
        let may_be_one = is_stored && context.admitted.iter().any(is_admitted);
        if may_be_one || own_place(below) == place_of(path) {
            return Ok(Judged::Failed(FailureKind::Reads(path.clone())));
        }
    }
    let unknown = unknown_program(context, toolchain, direct.as_ref(), &records)
        .map(|path| format!("`{}` is run, and is not of the toolchain", path.display()));
    let is_other = direct.as_ref().is_some_and(|direct| {
        run.by_driver && is_other_command(context, job, direct, place, &records, &run.end)
    });
    let other = is_other.then(|| "the driver ran other commands than it had said".to_owned());
    let changed = asked
        .changed
        .take()
        .map(|path| format!("`{}` changed while it was compiled, or just before", path.display()));
    let listed_unseen = listed_unseen(job, stage, place, run, &records)?.map(|path| {
        format!("the compiler lists `{}`, and was not seen to read it", path.display())
    });
    let short_heap =
        records.iter().any(|record| record.heap_was_short).then(|| SHORT_HEAP.to_owned());
    let same = same.map(|(below, path)| {
        let (below, path) = (below.display(), path.display());
        format!("`{below}` has the content of `{path}`, and could become that file")
    });
    let sources = stage.answers(context.sources, asked.sources);
    if let Some(reason) = unknown.or(other).or(changed).or(listed_unseen).or(same).or(short_heap) {
        return Ok(Judged::Unknown(reason, sources));
    }
    let shared = run.read_before.iter().flat_map(|before| before.answers.iter().cloned()).collect();
    let commands = Some(context.drivers.name(&command_of(job)));
    let admitted = admitted(context, &asked.system);
    let system = Answers::new(asked.system, context.looks);
    Ok(Judged::Known(Dependencies { commands, system, sources, shared, admitted }))
}

/// Names of the directories that the user admitted and from which the compiler read files or names.
fn admitted(context: &BuildContext<'_>, read: &BTreeSet<(PathBuf, Answer)>) -> Vec<Digest> {
    let counts = |answer: &Answer| {
        !matches!(answer, Answer::Absent | Answer::Directory | Answer::LinkedDirectory(_))
    };
    let is_read = |dir: &&PathBuf| {
        read.iter().any(|(path, answer)| counts(answer) && is_below(context, path, dir))
    };
    let dirs = context.admitted.iter().filter(is_read);
    dirs.map(|dir| name_of(&context.looks.real(dir))).collect()
}

/// Whether a path lies below a directory, either as it is written or with links resolved.
fn is_below(context: &BuildContext<'_>, path: &Path, dir: &Path) -> bool {
    let (real, real_dir) = (context.looks.real(path), context.looks.real(dir));
    [path, &*real].iter().any(|path| path.starts_with(dir) || path.starts_with(&*real_dir))
}

/// The file accesses of all records of a run.
#[derive(Default)]
struct FileAccesses {
    system: BTreeSet<(PathBuf, Answer)>,
    sources: BTreeSet<(PathBuf, Answer)>,
    fresh: Fresh,
    /// Whether files that the compiler did not find exist now.
    again: bool,
    reads: Option<PathBuf>,
    writes: Option<PathBuf>,
    changed: Option<PathBuf>,
}

impl FileAccesses {
    /// The judgement of a run without a usable object. `is_stored` says whether the sources come
    /// from a stored plan.
    fn without_object(&mut self, is_stored: bool) -> Option<Judged> {
        let fresh = std::mem::take(&mut self.fresh);
        let reads = |path: PathBuf| match path.is_relative() && is_stored {
            true => FailureKind::NotInPlan(path),
            false => FailureKind::Reads(path),
        };
        let failed = self.writes.take().map(FailureKind::Writes);
        let failed = failed.or_else(|| self.reads.take().map(reads)).map(Judged::Failed);
        let again = self.again.then_some(Judged::Again).or(failed);
        again.or_else(|| (!fresh.is_empty()).then_some(Judged::AgainAfter(fresh)))
    }

    fn take(
        &mut self,
        context: &BuildContext<'_>,
        stage: &Stage,
        settled: Settled,
        before: &Fresh,
    ) -> Result<(), CompileError> {
        let Settled { answers, stage: asked, reads, writes, changed, fresh, .. } = settled;
        // A file that did not change between the ends of two runs is the one that the second run
        // read.
        self.fresh.extend(fresh.into_iter().filter(|file| !before.contains(file)));
        self.system.extend(answers);
        self.reads = self.reads.take().or(reads);
        self.writes = self.writes.take().or(writes);
        self.changed = self.changed.take().or(changed);
        for (below, asked) in asked {
            let laid_out = || stage.found(context.sources, &below);
            if let Some(answer) = asked.found.then(laid_out).flatten() {
                // `..` may lead to another file here than among the sources. A directory is judged
                // by its entries.
                if !answer.is_directory() && stage.is_other(context.sources, &below) {
                    self.reads.get_or_insert(below.clone());
                }
                self.sources.insert((below.clone(), answer));
            }
            if asked.absent {
                self.take_absent(context, stage, below, asked.found)?;
            }
        }
        Ok(())
    }

    /// Handles a path that did not exist when the compiler looked for it.
    fn take_absent(
        &mut self,
        context: &BuildContext<'_>,
        stage: &Stage,
        below: PathBuf,
        found: bool,
    ) -> Result<(), CompileError> {
        match context.sources.answer(stage.source(), &below, context.looks.digests()) {
            // It was created while the compiler ran.
            Answer::Absent if found => self.again = true,
            Answer::Absent => drop(self.sources.insert((below, Answer::Absent))),
            // Only files and directories can be laid out.
            Answer::Other => drop(self.reads.get_or_insert(below)),
            // A directory on the way to a file is judged by its entries.
            answer
                if tidy_path(&below).starts_with("..")
                    && context.sources.without_parents(stage.source(), &below).is_none() =>
            {
                let tidy = tidy_path(&below);
                if answer == Answer::Directory && stage.add_above(&tidy)? {
                    self.again = true;
                } else {
                    self.reads.get_or_insert(tidy);
                }
            }
            _ if stage.add(context.sources, &below)? => self.again = true,
            _ => drop(self.reads.get_or_insert(below)),
        }
        Ok(())
    }
}

/// The records of a run, if they show what the compiler itself accessed: a
/// driver may have done its work without starting another program.
fn watched(run: &Run) -> Result<Vec<&Record>, Unwatched> {
    let records: Vec<&Record> = run
        .records
        .iter()
        .map(|record| record.as_ref().map_err(Unwatched::clone))
        .collect::<Result<_, _>>()?;
    let compiles = |process: &Process| matches!(process.class, Class::Compiler | Class::Assembler);
    let watched = records.iter().any(|record| record.processes.iter().any(compiles));
    if watched { Ok(records) } else { Err(Unwatched::Nothing) }
}

/// A program that no digest covers: one of a job's commands, or a compiler, linker or library that
/// ran.
fn unknown_program(
    context: &BuildContext<'_>,
    toolchain: &Toolchain,
    direct: Option<&Direct>,
    records: &[&Record],
) -> Option<PathBuf> {
    let known: HashSet<&Path> = toolchain.files().iter().map(PathBuf::as_path).collect();
    let is_known = |file: &Path| known.contains(file) || known.contains(&*context.looks.real(file));
    let compilers = records.iter().flat_map(|record| &record.processes);
    let ran = compilers
        .filter(|process| process.class != Class::Other)
        .flat_map(|process| process.libraries.iter().chain([&process.program]));
    let named = direct.into_iter().flat_map(|(_, commands)| commands.programs());
    let mut all = ran.map(PathBuf::as_path).chain(named);
    all.find(|file| !is_known(file)).map(Path::to_owned)
}

/// Whether a driver ran other commands than it had listed. Names of temporary files, which it makes
/// up, may differ.
fn is_other_command(
    context: &BuildContext<'_>,
    job: &Job,
    (defines, commands): &Direct,
    place: &launch::Place<'_>,
    records: &[&Record],
    end: &End,
) -> bool {
    let values = TemplateValues {
        input: &context.plan[job.source].main,
        defines,
        output: place.output,
        deps_file: place.deps_file,
        scratch: place.scratch,
    };
    let listed = commands.list.iter().map(|command| command.fill(&values));
    // Programs besides compilers and linkers do not count.
    let counts = |words: &Vec<OsString>| Class::from_arguments(words) != Class::Other;
    let listed: Vec<Vec<OsString>> = listed.filter(counts).collect();
    let ran = records.iter().flat_map(|record| &record.processes);
    let ran: Vec<_> = ran.filter(|process| process.class != Class::Other).collect();
    let scratch = place.scratch.as_os_str().as_encoded_bytes();
    let is_own = |word: &OsString| word.as_encoded_bytes().starts_with(scratch);
    let same =
        |(listed, ran): (&OsString, &OsString)| listed == ran || (is_own(listed) && is_own(ran));
    // A command that fails is the last.
    let complete = listed.len() == ran.len() || !matches!(end, End::Exited(0));
    !complete
        || ran.len() > listed.len()
        || listed.iter().zip(&ran).any(|(listed, ran)| {
            let ran = &ran.arguments;
            // The program may be named with or without links.
            listed.len() != ran.len() || !listed.iter().zip(ran).skip(1).all(same)
        })
}

/// The directories of a run.
fn places(
    context: &BuildContext<'_>,
    job: &Job,
    stage: &Stage,
    place: &launch::Place<'_>,
    run: &Run,
    records: &[&Record],
) -> Places {
    let base = context.places[job.toolchain.0].for_language(job.language);
    let scratch = context.looks.real(place.scratch);
    let places = base.with_stage(stage.dir()).with(Place::Scratch, scratch);
    let headers = run.read_before.iter().flat_map(|before| &before.own);
    let cover = |all: Places, file: &PathBuf| all.with_linked(Place::Covered, file, context.looks);
    let compilers = records.iter().flat_map(|record| &record.processes);
    let compilers = compilers.filter(|process| process.class == Class::Compiler);
    with_searched(headers.fold(places, cover), compilers, context.looks)
}

/// A source file, and a file elsewhere with the same content that was read. Whether they are one
/// file decides what `#pragma once` does, and this is reproduced and recorded only for files among
/// the sources.
fn same_elsewhere(
    context: &BuildContext<'_>,
    stage: &Stage,
    asked: &BTreeSet<(PathBuf, Answer)>,
    run: &Run,
    records: &[&Record],
) -> Option<(PathBuf, PathBuf)> {
    let (all, source) = (context.sources, stage.source());
    let digests = all.sources()[source.0].files.iter().map(|file| file.digest);
    let planned = all.files(source).into_iter().zip(digests);
    let planned = planned.map(|((path, bytes), it)| (Path::new(path), it, bytes.len() as u64));
    let looked_for = asked.iter().filter_map(|(below, answer)| {
        let size = fs::metadata(stage.dir().join(below)).ok()?.len();
        Some((&**below, answer.digest()?, size))
    });
    let mut by_size: HashMap<u64, Vec<(&Path, Digest)>> = HashMap::new();
    for (below, digest, size) in planned.chain(looked_for) {
        by_size.entry(size).or_default().push((below, digest));
    }
    by_size.remove(&0);
    let asks = records.iter().flat_map(|record| &record.asks);
    let opened = asks.filter(|ask| matches!(ask.what, What::Open { .. }) && ask.error.is_none());
    let before = run.read_before.iter().flat_map(|before| before.files.iter());
    let read: BTreeSet<&PathBuf> = opened.map(|ask| &ask.path).chain(before).collect();
    let mut elsewhere = read.into_iter().filter(|path| !path.starts_with(stage.dir()));
    elsewhere.find_map(|path| {
        let size = fs::metadata(path).ok()?.len();
        let candidates = by_size.get(&size)?;
        let digest = context.looks.digests().digest(path).ok()?;
        let (below, _) = candidates.iter().find(|(_, own)| *own == digest)?;
        Some((below.to_path_buf(), path.clone()))
    })
}

/// A file that the compiler lists as read, but that was not seen to be looked up, neither in this
/// run nor when the precompiled header was made. The list includes files that are only looked up,
/// those of `__has_embed`.
fn listed_unseen(
    job: &Job,
    stage: &Stage,
    place: &launch::Place<'_>,
    run: &Run,
    records: &[&Record],
) -> Result<Option<PathBuf>, CompileError> {
    if job.language == Language::Assembly {
        return Ok(None);
    }
    let listed = match fs::read(place.deps_file) {
        Ok(text) => depfile_paths(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io("read", place.deps_file)(error).into()),
    };
    let asks = records.iter().flat_map(|record| &record.asks);
    let found = asks.filter(|ask| ask.file.is_some());
    // Source: LLVM, `llvm/lib/Support/Path.cpp`, `native`, by which clang lists
    // `\` in a name as `/`.
    fn listed_as(path: &Path) -> Cow<'_, Path> {
        match path.to_str() {
            Some(name) if name.contains('\\') => PathBuf::from(name.replace('\\', "/")).into(),
            _ => path.into(),
        }
    }
    let asked: HashSet<Cow<'_, Path>> = found.map(|ask| listed_as(&ask.path)).collect();
    let precompiled = run.read_before.as_ref();
    let is_seen = |path: &PathBuf| {
        asked.contains(&listed_as(path))
            || precompiled.is_some_and(|before| before.files.contains(path))
    };
    Ok(listed.into_iter().map(|path| stage.dir().join(path)).find(|path| !is_seen(path)))
}
