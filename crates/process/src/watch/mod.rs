//! Records programs and their file accesses: a library that is loaded into every process of a run
//! writes what the process runs, and the paths that it looks up or changes, into a record.
//!
//! Create a [`Recorder`], pass its [`environment`] to the program, and read the [`Record`] when the
//! program and everything that it started have ended. If anything may be missing, the result is an
//! [`WatchError`] instead.
//!
//! Accesses are recorded of drivers and scripts whose answers depend on them. Compilers see only what
//! is declared ([`Visible`]), so of these, it is enough to record that they ran.
//!
//! [`environment`]: Recorder::environment

mod driver;
mod entries;
mod file_system_cache;
mod judge_record;
mod judgement;
mod landlock;
mod path_states;
mod record;
mod visible;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FallocateFlags, StatVfsMountFlags, fallocate, statvfs};
use rustix::process::{Resource, getrlimit};
use tempfile::TempPath;

use crate::preload::{self, PRELOAD_VARIABLE, RECORD_VARIABLE};

pub use file_system_cache::{FileSystemCache, is_in_proc};
pub use judge_record::{RunDependencies, judge_driver_record};
pub use judgement::tidy_path;
pub use landlock::{confined, landlock_abi, switch_off_landlock};
pub use path_states::{PathState, PathStates};
pub use record::{
    FileAccess, FileStat, Operation, Process, Record, SHORT_HEAP, WatchError, compiles,
};
pub use visible::Visible;

/// The longest record. The longest so far, of a HIP kernel compiled by hipcc with the whole C++
/// library and all accesses, was a hundredth of this. A record takes only the memory that is
/// written.
const RECORD_LIMIT: u64 = 16 << 20;

/// The least limit, for systems that limit the size of files.
const LEAST_LIMIT: u64 = 1 << 20;

/// Options of a record, and permissions of its run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecorderOptions<'a> {
    /// Whether file accesses are recorded, for runs whose result depends on them. Without, only
    /// attempts to write elsewhere than to `writable` are.
    pub all: bool,
    /// The files and directories that processes of the run may write; `None` for no restriction.
    /// Attempts to write elsewhere fail with `EACCES`, and are among [`Record::accesses`].
    /// `/dev/null` may always be opened.
    pub writable: Option<&'a [&'a Path]>,
    /// The processes that the kernel confines to `writable`, if it has Landlock.
    pub landlock: Option<Landlock>,
    /// What compilers, assemblers and linkers see: to them, no other path exists, and they start no
    /// programs. `None` if they see everything. With `landlock`, the kernel also stops them from
    /// reading other files, whatever `landlock` says of writing.
    pub visible: Option<&'a Visible>,
}

/// The processes that the kernel confines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// Compilers, assemblers and linkers. Programs that they start can't be watched, since these
    /// can't load the library from another process's memory.
    Compilers,
    /// All processes, from the first one's start on. The record and the library are files in the
    /// first writable directory, if it has room and programs may be loaded from it; otherwise this
    /// works as [`Landlock::Compilers`].
    All,
}

/// A record that is being written. It is removed when this value is dropped.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    limit: u64,
    path: PathBuf,
    /// The library and the record as files; `None` if both are in memory.
    files: Option<(TempPath, TempPath)>,
    /// What all processes may write, if the kernel confines them from their start on.
    confined: Option<Vec<PathBuf>>,
    /// The program that was started.
    started: OnceLock<PathBuf>,
}

impl Recorder {
    /// A record of one of a driver's commands, a compiler or linker of any name, which may write
    /// only into `scratch`, and sees only what is declared if that is known.
    ///
    /// # Errors
    /// As [`Recorder::with`].
    pub fn of_compiler(scratch: &Path, visible: Option<&Visible>) -> io::Result<Self> {
        let (writable, landlock) = (Some(&[scratch][..]), Some(Landlock::Compilers));
        Self::with(&RecorderOptions { all: false, writable, landlock, visible })
    }

    /// The same for a driver or script that compiles, and everything that it starts.
    ///
    /// # Errors
    /// As [`Recorder::with`].
    pub fn of_driver(scratch: &Path, visible: Option<&Visible>) -> io::Result<Self> {
        let (writable, landlock) = (Some(&[scratch][..]), Some(Landlock::All));
        Self::with(&RecorderOptions { all: false, writable, landlock, visible })
    }

    /// A record of a driver or script that is asked a question: with `all`, of the file accesses of
    /// it and everything that it starts.
    ///
    /// # Errors
    /// As [`Recorder::with`].
    pub fn of_answer(scratch: &Path, all: bool) -> io::Result<Self> {
        let (writable, landlock) = (Some(&[scratch][..]), Some(Landlock::All));
        Self::with(&RecorderOptions { all, writable, landlock, visible: None })
    }

    /// An empty record.
    ///
    /// # Errors
    /// If the system has no files in memory or no /proc, files may not get larger than 1 MiB, what
    /// is visible leaves no room in the record, or a writable path does not exist.
    pub fn with(options: &RecorderOptions<'_>) -> io::Result<Self> {
        // A process that makes a file larger than its limit is killed.
        let longest = getrlimit(Resource::Fsize).current;
        let limit = longest.map_or(RECORD_LIMIT, |longest| longest.min(RECORD_LIMIT));
        if limit < LEAST_LIMIT {
            let reason = "no file may get as long as a record (`ulimit -f`)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        let real = |paths: &[&Path]| paths.iter().map(fs::canonicalize).collect();
        let writable: Option<Vec<PathBuf>> = options.writable.map(real).transpose()?;
        let landlock = options.landlock.filter(|_| landlock_abi().is_some());
        let dir = writable.as_ref().and_then(|paths| paths.first());
        let dir = dir.filter(|dir| landlock == Some(Landlock::All) && loads(dir));
        let (mut file, files) = match dir.and_then(|dir| files_in(dir, limit).ok()) {
            Some((library, record, file)) => (file, Some((library, record))),
            None => (preload::memory_file("gfxpack-record")?, None),
        };
        // The path in /proc by which every process of the run finds the record.
        let in_memory = preload::own_file(&file)?;
        let path = files.as_ref().map_or(in_memory, |(_, record)| record.to_path_buf());
        let named = || options.writable.into_iter().flatten().copied();
        let real = || writable.iter().flatten().map(PathBuf::as_path);
        let visible = options.visible.map(|visible| visible.list(named().chain(real())));
        let confines = landlock.is_some() && (files.is_none() || visible.is_some());
        let wishes = (options.all, confines);
        let header = entries::empty(limit, wishes, writable.as_deref(), visible.as_deref());
        if header.len() as u64 > limit / 2 {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a record has no room for so many names",
            ));
        }
        file.set_len(limit)?;
        file.write_all(&header)?;
        let confined = writable.filter(|_| files.is_some());
        Ok(Self { file, limit, path, files, confined, started: OnceLock::new() })
    }

    /// A path of the record for processes of the same user, valid while this value lives.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The environment with which a program, and everything that it starts, writes into this
    /// record.
    ///
    /// # Errors
    /// If the system has no files in memory or no /proc.
    pub fn environment(&self) -> io::Result<[(OsString, OsString); 2]> {
        let library = match &self.files {
            Some((library, _)) => library.as_os_str(),
            None => preload::path()?,
        };
        Ok([
            (PRELOAD_VARIABLE.into(), library.into()),
            (RECORD_VARIABLE.into(), self.path().into()),
        ])
    }

    /// Starts the run's first program, which has this record's [`environment`](Self::environment).
    ///
    /// # Errors
    /// The errors of `start`.
    pub fn start<T: Send>(
        &self,
        program: &Path,
        start: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        self.started.get_or_init(|| program.to_owned());
        match &self.confined {
            Some(writable) => confined(writable, start),
            None => start(),
        }
    }

    /// The record. All processes that write to it must have ended.
    ///
    /// # Errors
    /// [`WatchError`] if accesses may be missing.
    pub fn finish(self) -> Result<Record, WatchError> {
        let mut header = [0; entries::HEAD];
        self.file.read_exact_at(&mut header, 0).map_err(|_| WatchError::Damaged { at: 0 })?;
        let used = entries::used(&header, self.limit)?;
        let mut bytes = vec![0; used];
        self.file.read_exact_at(&mut bytes, 0).map_err(|_| WatchError::Damaged { at: 0 })?;
        let record = Record::parse(&bytes, self.limit)?;
        let first = self.started.get().zip(record.processes.first());
        let first = first.map(|(program, process)| (program.as_path(), process.program.as_path()));
        let others = record.executions.iter().map(|(program, process)| {
            (program.as_path(), record.processes[*process].program.as_path())
        });
        match first.into_iter().chain(others).find(|(named, ran)| !driver::is_run_by(named, ran)) {
            Some((named, _)) => Err(WatchError::NotWatched(named.to_owned())),
            None => Ok(record),
        }
    }
}

/// Calls `run` with a recorder. If none can be made, `run` is called without one.
///
/// # Errors
/// The errors of `run`.
pub fn recorded<T, E>(
    recorder: io::Result<Recorder>,
    run: impl FnOnce(Option<&Recorder>) -> Result<T, E>,
) -> Result<(T, Result<Record, WatchError>), E> {
    let done = run(recorder.as_ref().ok())?;
    let no_record = |error: io::Error| WatchError::NoRecord(error.to_string());
    Ok((done, recorder.map_err(no_record).and_then(Recorder::finish)))
}

/// Creates the library and an empty record as files in a directory. The record's full size is
/// allocated, since a process that writes into a mapped file is killed if the disk is full.
fn files_in(dir: &Path, limit: u64) -> io::Result<(TempPath, TempPath, File)> {
    let library = preload::write_into(dir)?;
    let record = tempfile::Builder::new().prefix(".gfxpack-record-").tempfile_in(dir)?;
    fallocate(record.as_file(), FallocateFlags::empty(), 0, limit)?;
    let (file, record) = record.into_parts();
    Ok((library, record, file))
}

/// Whether programs and libraries may be loaded from a directory. The loader splits the names that
/// it is given at these bytes, or replaces them.
///
/// Source: ld.so(8), `LD_PRELOAD` and "Dynamic string tokens".
fn loads(dir: &Path) -> bool {
    let name = dir.as_os_str().as_bytes();
    !name.iter().any(|byte| b" :$".contains(byte))
        && statvfs(dir).is_ok_and(|system| !system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}
