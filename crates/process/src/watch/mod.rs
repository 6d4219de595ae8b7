//! Watching: a library that is loaded into every process of a run writes what
//! the process asks of the file system into a record, found and not found.
//!
//! Whoever watches makes a [`Recorder`], gives its [`environment`] to the
//! program, and reads the [`Record`] when the program and all that it started
//! have ended. What can't be told surely is no record but an [`Unwatched`].
//!
//! [`environment`]: Recorder::environment

mod answers;
mod entries;
mod looks;
mod place;
mod settle;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

pub use answers::{Answer, Answers, Query};
pub use entries::{Ask, Class, FileState, Process, Record, Unwatched, What};
pub use looks::Looks;
pub use place::{Judgement, Place, Places, tidy_below};
pub use settle::{InStage, Settled, settle};

use crate::preload::{self, PRELOAD_VARIABLE, RECORD_VARIABLE};

/// How long a record may be. The longest that was seen, a HIP kernel by
/// hipcc with everything of the C++ library, is a hundredth of it. It takes
/// no more memory than what is written.
pub const RECORD_LIMIT: u64 = 16 << 20;

/// What is wanted of a record, and what its run may do.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecorderOptions<'a> {
    /// Whether drivers and scripts tell what they ask of files: what their
    /// answer rests on.
    pub all: bool,
    /// The files and directories that any process of the run may write; `None`
    /// for whatever it can. What is tried elsewhere fails with `EACCES`, and is
    /// among [`Record::asks`], whoever tried. `/dev/null` may be opened always.
    pub writable: Option<&'a [&'a Path]>,
}

/// A record that is being written: a file in memory, gone with this value.
#[derive(Debug)]
pub struct Recorder {
    file: File,
}

impl Recorder {
    /// An empty record of a run that may write whatever it can.
    ///
    /// # Errors
    /// Where the system has no files in memory.
    pub fn new() -> io::Result<Self> {
        Self::with(&RecorderOptions::default())
    }

    /// An empty record.
    ///
    /// # Errors
    /// Where the system has no files in memory, or a path that may be written
    /// is not there.
    pub fn with(options: &RecorderOptions<'_>) -> io::Result<Self> {
        let real = |paths: &[&Path]| paths.iter().map(fs::canonicalize).collect();
        let writable: Option<Vec<PathBuf>> = options.writable.map(real).transpose()?;
        let head = entries::empty(RECORD_LIMIT, options.all, writable.as_deref());
        let mut file = File::from(memfd_create("gfxpack-record", MemfdFlags::CLOEXEC)?);
        file.set_len(RECORD_LIMIT)?;
        file.write_all(&head)?;
        Ok(Self { file })
    }

    /// The record's path for processes of the same user, while this value
    /// lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// What has a program, and whatever it starts with the same environment,
    /// write into this record.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where there is no library for this
    /// system.
    pub fn environment(&self) -> io::Result<[(OsString, OsString); 2]> {
        let (library, record) = (preload::path()?, self.path());
        Ok([(PRELOAD_VARIABLE.into(), library.into()), (RECORD_VARIABLE.into(), record.into())])
    }

    /// What was recorded; everything that could write must have ended.
    ///
    /// # Errors
    /// [`Unwatched`] where the record may not tell everything.
    pub fn finish(self) -> Result<Record, Unwatched> {
        let mut head = [0; entries::HEAD];
        self.file.read_exact_at(&mut head, 0).map_err(|_| Unwatched::Damaged { at: 0 })?;
        let used = entries::used(&head, RECORD_LIMIT)?;
        let mut bytes = vec![0; used];
        self.file.read_exact_at(&mut bytes, 0).map_err(|_| Unwatched::Damaged { at: 0 })?;
        Record::parse(&bytes, RECORD_LIMIT)
    }
}
