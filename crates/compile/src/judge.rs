//! Judges how a job's compilers ran: whether they could see only what is declared, and ran with the
//! commands that its key covers.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_launch::{CompilerRun, Direct, RunPaths, depfile_paths};
use gfxpack_plan::plan::Job;
use gfxpack_process::ProgramEnd;
use gfxpack_process::watch::{Record, SHORT_HEAP, WatchError, compiles};

use crate::context::BuildContext;
use crate::declare::Inputs;
use crate::failure_kind::FailureKind;
use crate::nearby_files::{FileId, file_id_of};

/// The judgement of a run.
pub(crate) enum Judged {
    /// It did what it may not, so its object can't be used.
    Failed(FailureKind),
    /// Its object is a function of its key.
    Known,
    /// It may depend on something that its key does not cover, for this reason.
    Unknown(String),
}

/// Judges a run of a job's compilers.
pub(crate) fn judge(
    context: &BuildContext<'_>,
    job: &Job,
    inputs: Option<&Inputs>,
    paths: &RunPaths<'_>,
    run: &CompilerRun,
) -> Judged {
    let records: Result<Vec<&Record>, &WatchError> =
        run.records.iter().map(Result::as_ref).collect();
    let records = match records {
        Ok(records) => records,
        Err(reason) => return Judged::Unknown(reason.to_string()),
    };
    if let Some(path) = records.iter().find_map(|record| record.refused_write()) {
        return Judged::Failed(FailureKind::Writes(path.to_owned()));
    }
    let (Some(inputs), Some(direct)) = (inputs, context.declarer.direct(job)) else {
        return Judged::Unknown("the driver does not tell its commands".to_owned());
    };
    if !inputs.twice.is_empty() {
        let listed = fs::read(paths.deps_file).unwrap_or_default();
        let listed: HashSet<PathBuf> = depfile_paths(&listed).into_iter().collect();
        let outside = listed.iter().filter(|path| path.is_absolute());
        let outside: HashSet<FileId> = outside.filter_map(|path| file_id_of(path)).collect();
        let is_read = |path: &Path| {
            listed.contains(path)
                || (path.is_absolute() && file_id_of(path).is_some_and(|id| outside.contains(&id)))
        };
        // Two files for it, but one for a user's compiler.
        let twice = inputs.twice.iter().find(|(own, path)| is_read(own) && is_read(path));
        if let Some((own, path)) = twice.cloned() {
            return Judged::Failed(FailureKind::ReadsByOtherName { path, own });
        }
    }
    let unknown = if is_other_command(context, job, paths, run, &records, &direct) {
        Some("the driver ran other commands than it had listed".to_owned())
    } else if let Some(path) = unknown_program(context, job, &records, &direct) {
        Some(format!("`{}` is run, and is not of the toolchain", path.display()))
    } else if let Some(path) = inputs.changed() {
        let path = path.display();
        Some(format!("`{path}` changed while it was compiled, or just before"))
    } else {
        let short_heap = records.iter().any(|record| record.heap_was_short);
        short_heap.then(|| SHORT_HEAP.to_owned())
    };
    unknown.map_or(Judged::Known, Judged::Unknown)
}

/// A program that no digest covers: one of a job's commands, or a compiler, linker or library
/// that ran.
fn unknown_program(
    context: &BuildContext<'_>,
    job: &Job,
    records: &[&Record],
    direct: &Direct,
) -> Option<PathBuf> {
    let toolchain = context.declarer.toolchain(job.toolchain);
    let known: HashSet<&Path> = toolchain.files.iter().map(PathBuf::as_path).collect();
    let file_system = context.declarer.file_system;
    let is_known = |file: &Path| known.contains(file) || known.contains(&*file_system.real(file));
    let compilers = records.iter().flat_map(|record| &record.processes);
    let ran = compilers
        .filter(|process| process.compiles)
        .flat_map(|process| process.libraries.iter().chain([&process.program]));
    let listed = direct.1.list.iter().filter_map(|command| command.texts().first().copied());
    let mut all = ran.map(PathBuf::as_path).chain(listed.map(Path::new));
    all.find(|file| !is_known(file)).map(Path::to_owned)
}

/// Whether other compilers ran than the commands that the driver had listed, or one that could
/// not be bound. Names of temporary files, which it makes up, may differ.
fn is_other_command(
    context: &BuildContext<'_>,
    job: &Job,
    paths: &RunPaths<'_>,
    run: &CompilerRun,
    records: &[&Record],
    (defines, commands): &Direct,
) -> bool {
    let values = paths.values(&context.plan[job.source].main, defines);
    let listed = commands.list.iter().map(|command| command.fill(&values));
    // Programs besides compilers and linkers do not count.
    let listed: Vec<Vec<OsString>> = listed.filter(|args| compiles(args)).collect();
    let ran = records.iter().flat_map(|record| &record.processes);
    let ran: Vec<_> = ran.filter(|process| process.compiles).collect();
    let scratch = paths.scratch.as_os_str().as_encoded_bytes();
    let is_own = |arg: &OsString| arg.as_encoded_bytes().starts_with(scratch);
    let same =
        |(listed, ran): (&OsString, &OsString)| listed == ran || (is_own(listed) && is_own(ran));
    // A command that fails is the last.
    let complete = listed.len() == ran.len() || !matches!(run.end, ProgramEnd::Exited(0));
    if !complete || ran.is_empty() || ran.len() > listed.len() {
        return true;
    }
    run.by_driver
        && listed.iter().zip(&ran).any(|(listed, ran)| {
            let ran = &ran.arguments;
            // The program may be named with or without links.
            listed.len() != ran.len() || !listed.iter().zip(ran).skip(1).all(same)
        })
}
