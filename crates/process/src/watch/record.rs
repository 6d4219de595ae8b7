//! The content of a record: programs that ran, and their file accesses.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::file_digest::Identity;

/// Why the file accesses of a run are not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The record is full.
    #[error("the record is full")]
    Full,
    /// An operation that a record can't represent.
    #[error("something was done that a record can't tell: `{0}`")]
    NotRecordable(String),
    /// A path or a command line could not be recorded.
    #[error("a path could not be recorded")]
    UnrecordedPath,
    /// It is not a record, or not a whole one.
    #[error("the record is damaged at byte {at}")]
    Damaged {
        /// The position.
        at: usize,
    },
    /// A program was started but recorded nothing: it does not load libraries, or not those in its
    /// parent's environment.
    #[error("`{}` was started and could not be watched", .0.display())]
    NotWatched(PathBuf),
    /// A process did not end by itself.
    #[error("`{}` did not end by itself", .0.display())]
    NotEnded(PathBuf),
    /// No record could be created.
    #[error("no compiler can be watched: {0}")]
    NoRecord(String),
    /// No process recorded anything.
    #[error("no process could be watched")]
    Nothing,
}

/// Whether a program with this name and these arguments is a compiler, an assembler or a linker, as
/// the recorder decides it.
pub fn compiles(args: &[OsString]) -> bool {
    let second = args.get(1).map(|arg| arg.as_bytes()).unwrap_or_default();
    let name = args.first().and_then(|arg| Path::new(arg).file_name()).unwrap_or_default();
    second == b"-cc1"
        || second == b"-cc1as"
        || second.starts_with(b"@")
        || name.as_bytes().windows(3).any(|part| part == b"lld")
}

/// One program that ran; a process that executes another program counts twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process number.
    pub pid: u32,
    /// Its file.
    pub program: PathBuf,
    /// Its arguments, the program's name first.
    pub arguments: Vec<OsString>,
    /// Whether it is a compiler, an assembler or a linker.
    pub compiles: bool,
    /// The libraries that it loaded, by the paths at which the loader found them; without the
    /// preload library.
    pub libraries: Vec<PathBuf>,
}

/// The state of a file when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStat {
    /// Type and permissions, as `st_mode` has them.
    pub mode: u32,
    /// The file's identity, with the time of its last change.
    pub identity: Identity,
}

impl FileStat {
    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }
}

/// An operation on a path. Paths are absolute and otherwise as given, with links and `..`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opened.
    Open {
        /// The flags of `open`.
        flags: u32,
        /// The path of the opened file without links, if it could be opened.
        real: Option<PathBuf>,
    },
    /// `stat`.
    Stat,
    /// `lstat`.
    Lstat,
    /// Whether it may be accessed in this mode.
    Access(u32),
    /// The target of a symbolic link.
    Readlink(Option<PathBuf>),
    /// The path without links.
    Realpath(Option<PathBuf>),
    /// The names in a directory.
    List,
    /// The file system of the path.
    FileSystem,
    /// Executed as a program.
    Execute,
    /// Created, removed, renamed or changed otherwise.
    Change,
}

impl Operation {
    /// Whether it changes the file or directory.
    pub fn writes(&self) -> bool {
        const WRITING: i32 = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
        match self {
            Self::Open { flags, .. } => flags & WRITING.cast_unsigned() != 0,
            Self::Change => true,
            _ => false,
        }
    }
}

/// One access to a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileAccess {
    /// The path, absolute.
    pub path: PathBuf,
    /// The operation.
    pub operation: Operation,
    /// The `errno` of a failed call.
    pub error: Option<i32>,
    /// The file's state, if the call returned it or opened the file.
    pub file: Option<FileStat>,
}

impl FileAccess {
    /// Whether it was not allowed.
    pub fn is_refused(&self) -> bool {
        self.error == Some(libc::EACCES)
    }

    /// Whether the result is that the file does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self.error, Some(libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG))
    }
}

/// The file accesses of a run's processes, in the order in which the calls returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The programs that ran.
    pub processes: Vec<Process>,
    /// The programs that processes executed or started, as they named them, each with the index of
    /// the process that came of it.
    pub(super) executions: Vec<(PathBuf, usize)>,
    /// The file accesses of all processes if the options say so; else only attempts to write where
    /// that is not allowed.
    pub accesses: Vec<FileAccess>,
    /// Whether a compiler also used another heap than the preloaded one, so that its output may
    /// differ from run to run.
    pub heap_was_short: bool,
}

/// The explanation for such a record.
pub const SHORT_HEAP: &str = "a limit of memory (`ulimit -v` or `-d`) left no room for the heap that \
    gives equal sources equal bytes: raise it to build what can be kept";

impl Record {
    /// The first path that the run tried to write and may not.
    pub fn refused_write(&self) -> Option<&Path> {
        // Every bash tries the terminal, and may have none.
        let is_harmless = |path: &Path| ["/dev/null", "/dev/tty"].map(Path::new).contains(&path);
        let is_refused = |access: &&FileAccess| {
            access.operation.writes() && access.is_refused() && !is_harmless(&access.path)
        };
        self.accesses.iter().find(is_refused).map(|access| access.path.as_path())
    }

    /// The regular files that were opened, by the paths used to open them.
    pub fn read(&self) -> impl Iterator<Item = PathBuf> {
        const REGULAR: u32 = 0o100_000;
        let is_regular = |file: FileStat| file.mode & 0o170_000 == REGULAR;
        let opened = self.accesses.iter().filter(move |access| {
            matches!(access.operation, Operation::Open { .. })
                && !access.operation.writes()
                && access.file.is_some_and(is_regular)
        });
        opened.map(|access| access.path.clone())
    }
}
