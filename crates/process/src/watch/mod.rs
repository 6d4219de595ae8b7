//! Watching: a library that is loaded into every process of a run writes what
//! the process asks of the file system into a record, found and not found.
//!
//! Whoever watches makes a [`Recorder`], gives its [`environment`] to the
//! program, and reads the [`Record`] when the program and all that it started
//! have ended. If accesses may be missing, there is an [`Unwatched`] in place of the
//! record.
//!
//! [`environment`]: Recorder::environment

mod answer;
mod answers;
mod driver;
mod entries;
mod landlock;
mod looks;
mod path_text;
mod place;
mod record;
mod settle;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, StatVfsMountFlags, fallocate, statvfs};
use rustix::process::{Resource, getrlimit};
use tempfile::TempPath;

use self::entries::Head;
use crate::preload::{self, PRELOAD_VARIABLE, RECORD_VARIABLE};

pub use answer::{Answer, Query};
pub use answers::{Answers, KeptAnswers};
pub use driver::{driver_places, settle_driver};
pub use landlock::{landlock_abi, switch_off_landlock};
pub use looks::{Looks, is_in_proc};
pub use place::{Judgement, Place, Places, tidy_path};
pub use record::{Ask, Class, FileState, Process, Record, SHORT_HEAP, Unwatched, What};
pub use settle::{InStage, Settled, settle};

/// How long a record may be. The longest that was seen, a HIP kernel by
/// hipcc with everything of the C++ library, is a hundredth of it. It takes
/// no more memory than what is written.
pub const RECORD_LIMIT: u64 = 16 << 20;

/// How long one may be at least, where the system lets no file get that long.
const LEAST_LIMIT: u64 = 1 << 20;

/// What is wanted of a record, and what its run may do.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecorderOptions<'a> {
    /// Whether the accesses of drivers and scripts are recorded too, on which
    /// their output depends.
    pub all: bool,
    /// The files and directories that any process of the run may write; `None`
    /// for whatever it can. What is tried elsewhere fails with `EACCES`, and is
    /// among [`Record::asks`], whoever tried. `/dev/null` may be opened always.
    pub writable: Option<&'a [&'a Path]>,
    /// Whom the kernel is asked to hold to `writable`, where it has Landlock.
    pub landlock: Option<Landlock>,
}

/// Whom the kernel holds to what a run may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// Compilers, assemblers and linkers. What they start can't be watched:
    /// it can't load what lies in another process's memory.
    Compilers,
    /// All processes. The record and the library lie as files in the first
    /// directory that may be written, if there is room and programs may be
    /// loaded from there; else it is as [`Landlock::Compilers`].
    All,
}

/// A record that is being written, gone with this value.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    limit: u64,
    path: PathBuf,
    /// The library and the record as files; else both are in memory.
    files: Option<(TempPath, TempPath)>,
}

impl Recorder {
    /// An empty record of a run that may write whatever it can.
    ///
    /// # Errors
    /// Where the system has no files in memory.
    pub fn new() -> io::Result<Self> {
        Self::with(&RecorderOptions::default())
    }

    /// A record of one command of a driver's, a compiler or linker by whatever
    /// name, which may write nothing but what is in `scratch`.
    ///
    /// # Errors
    /// As [`Recorder::with`].
    pub fn of_compiler(scratch: &Path) -> io::Result<Self> {
        let (writable, landlock) = (Some(&[scratch][..]), Some(Landlock::Compilers));
        Self::with(&RecorderOptions { all: true, writable, landlock })
    }

    /// Likewise of a driver or script and all that it starts; with `all`, they
    /// tell what they ask of files.
    ///
    /// # Errors
    /// As [`Recorder::with`].
    pub fn of_driver(scratch: &Path, all: bool) -> io::Result<Self> {
        let (writable, landlock) = (Some(&[scratch][..]), Some(Landlock::All));
        Self::with(&RecorderOptions { all, writable, landlock })
    }

    /// An empty record.
    ///
    /// # Errors
    /// Where the system has no files in memory or no /proc, files may not get larger
    /// than 1 MiB, or a path that may be written is not there.
    pub fn with(options: &RecorderOptions<'_>) -> io::Result<Self> {
        // Whoever makes a file larger than it may be is killed.
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
        // By /proc, every process of the run finds out where its files lie.
        let in_memory = preload::own_file(&file)?;
        let path = files.as_ref().map_or(in_memory, |(_, record)| record.to_path_buf());
        let head = Head {
            all: options.all,
            writable: writable.as_deref(),
            landlock: landlock.is_some(),
            landlock_all: files.is_some(),
        };
        file.set_len(limit)?;
        file.write_all(&head.bytes(limit))?;
        Ok(Self { file, limit, path, files })
    }

    /// The record's path for processes of the same user, while this value
    /// lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// What has a program, and whatever it starts with the same environment,
    /// write into this record.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where there is no library for this
    /// system.
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

    /// What was recorded; everything that could write must have ended.
    ///
    /// # Errors
    /// [`Unwatched`] where the record may not tell everything.
    pub fn finish(self) -> Result<Record, Unwatched> {
        let mut head = [0; entries::HEAD];
        self.file.read_exact_at(&mut head, 0).map_err(|_| Unwatched::Damaged { at: 0 })?;
        let used = entries::used(&head, self.limit)?;
        let mut bytes = vec![0; used];
        self.file.read_exact_at(&mut bytes, 0).map_err(|_| Unwatched::Damaged { at: 0 })?;
        Record::parse(&bytes, self.limit)
    }
}

/// Runs something with a record of what it asks of the file system. Where none
/// can be had, it runs without.
///
/// # Errors
/// Those of `run`.
pub fn recorded<T, E>(
    recorder: io::Result<Recorder>,
    run: impl FnOnce(Option<&Recorder>) -> Result<T, E>,
) -> Result<(T, Result<Record, Unwatched>), E> {
    let done = run(recorder.as_ref().ok())?;
    let no_record = |error: io::Error| Unwatched::NoRecord(error.to_string());
    Ok((done, recorder.map_err(no_record).and_then(Recorder::finish)))
}

/// The library and an empty record as files in a directory. All room that the
/// record may need is taken: where a disk gets full, whoever writes into a
/// mapped file is killed.
fn files_in(dir: &Path, limit: u64) -> io::Result<(TempPath, TempPath, File)> {
    let library = preload::write_into(dir)?;
    let record = tempfile::Builder::new().prefix(".gfxpack-record-").tempfile_in(dir)?;
    fallocate(record.as_file(), FallocateFlags::empty(), 0, limit)?;
    let (file, record) = record.into_parts();
    Ok((library, record, file))
}

/// Whether programs and libraries may be loaded from a directory. The loader
/// parts the names that it is given at these bytes, or replaces them.
///
/// Source: ld.so(8), `LD_PRELOAD` and "Dynamic string tokens".
fn loads(dir: &Path) -> bool {
    let name = dir.as_os_str().as_bytes();
    !name.iter().any(|byte| b" :$".contains(byte))
        && statvfs(dir).is_ok_and(|system| !system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}
