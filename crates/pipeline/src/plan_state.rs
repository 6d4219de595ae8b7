//! The state of a plan before it is built: which jobs are done, and the commands
//! of all.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_compile::{Cancel, FileSystemCache, SourceFiles as _};
use gfxpack_model::SourceId;
use gfxpack_plan::plan::Job;
use gfxpack_process::write_output;
use rayon::prelude::*;

use crate::error::{self, Result};
use crate::prepare::Prepared;

/// The subdirectory for objects that people compile by hand.
const OBJECTS: &str = "objects";
const COMMANDS: &str = "commands";
/// A directory with this file may be emptied and written again.
const MARK: &str = ".staged-by-gfxpack";

/// Looks all jobs up: which of them, by number, would not run since their objects are in the store,
/// and which since they have a kept refusal. Compilers may read the directories `admitted` besides
/// the sources. Nothing is written.
pub fn look_up(prepared: &Prepared, admitted: &[PathBuf]) -> (Vec<bool>, Vec<bool>) {
    let store = &prepared.cache.store;
    let (file_system, cancel) = (FileSystemCache::new(&prepared.cache.digests), Cancel::default());
    let declarer = prepared.declarer(&file_system, &cancel, admitted).without_writing();
    let state = |job: &Job| {
        let key = declarer.declared(job).key;
        let cached = store.lookup(key).is_some();
        (cached, !cached && store.refusal(key).is_some())
    };
    prepared.plan.jobs.par_iter().map(state).unzip()
}

/// A job's command, quoted for a shell.
pub fn command_line(prepared: &Prepared, job: &Job) -> String {
    prepared.toolchains[job.toolchain.0].command_line(job.program, &job.arguments)
}

/// Whether gfxpack stages something with this name.
fn is_staged(name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    let number = name.strip_prefix("source-").map(str::parse::<usize>);
    number.is_some_and(|number| number.is_ok()) || [OBJECTS, COMMANDS].contains(&name)
}

/// Creates an empty directory, or removes what was staged in it before, so that
/// no file stays that the sources no longer have.
fn make_empty(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(error::io("create", dir))?;
    let entries = fs::read_dir(dir).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.map_err(error::io("read", dir))?;
    let mark = dir.join(MARK);
    if !entries.is_empty() && !mark.is_file() {
        return Err(error::usage(
            format!("failed to lay sources out in `{}`: it has other contents", dir.display()),
            "give a new or an empty directory, or one that this gfxpack laid sources out in",
        ));
    }
    write_output(&mark, |_| Ok(())).map_err(error::io("write", &mark))?;
    for path in entries.iter().filter(|it| is_staged(&it.file_name())).map(DirEntry::path) {
        // Of a link, only remove the link itself.
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(error::io("remove", &path))?;
    }
    Ok(())
}

/// Writes `DIR/source-N` for every source, and `DIR/commands`: one line per job
/// for a shell in DIR, which makes `objects/DIGEST.o`.
///
/// # Errors
/// If the directory has other contents, or a file can't be written.
pub fn stage(prepared: &Prepared, dir: &Path) -> Result<()> {
    make_empty(dir)?;
    let objects = dir.join(OBJECTS);
    fs::create_dir_all(&objects).map_err(error::io("create", &objects))?;
    for source in 0..prepared.plan.sources.len() {
        let to = dir.join(format!("source-{source}"));
        prepared.inputs.sources.lay_out(SourceId(source), &to)?;
    }
    let mut lines = String::new();
    for job in &prepared.plan.jobs {
        let (command, source, digest) = (command_line(prepared, job), job.source.0, job.digest);
        lines += &format!("cd source-{source} && {command} -o ../{OBJECTS}/{digest}.o\n");
    }
    let path = dir.join(COMMANDS);
    write_output(&path, |out| out.write_all(lines.as_bytes())).map_err(error::io("write", &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_laid_out_before_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, apart) = (dir.path().join("st"), dir.path().join("apart"));
        fs::create_dir(&apart).unwrap();
        fs::write(apart.join("a.h"), "").unwrap();
        make_empty(&dir).unwrap();
        make_empty(&dir).unwrap();
        fs::create_dir_all(dir.join("source-0/sub")).unwrap();
        fs::write(dir.join("source-0/sub/old.h"), "").unwrap();
        std::os::unix::fs::symlink(&apart, dir.join("source-1")).unwrap();
        for own in ["Makefile", "source-code", "commands"] {
            fs::write(dir.join(own), "").unwrap();
        }
        make_empty(&dir).unwrap();
        let names = fs::read_dir(&dir).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [MARK, "Makefile", "source-code"]);
        assert!(apart.join("a.h").exists());
        assert!(make_empty(&apart).is_err());
    }
}
