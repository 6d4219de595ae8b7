//! What a record says: programs that ran, and what they asked.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::file_digest::Identity;

/// Why it is not known what a run asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unwatched {
    /// The record is longer than it may be.
    #[error("the record is full")]
    Full,
    /// Something was done that a record has no form for.
    #[error("something was done that a record can't tell: `{0}`")]
    Untold(String),
    /// A path or a command line could not be recorded.
    #[error("a path could not be recorded")]
    Unnamed,
    /// A call was under way when its process ended.
    #[error("{0} calls were cut short")]
    CutShort(u32),
    /// It is not a record, or not a whole one.
    #[error("the record is damaged at byte {at}")]
    Damaged {
        /// Where.
        at: usize,
    },
    /// A program was started and said nothing: it does not load libraries, or
    /// not those that its parent wants it to.
    #[error("`{}` was started and could not be watched", .0.display())]
    Silent(PathBuf),
    /// A process did not end by itself.
    #[error("`{}` did not end by itself", .0.display())]
    NoEnd(PathBuf),
    /// There could be no record.
    #[error("no compiler can be watched: {0}")]
    NoRecord(String),
    /// No process wrote anything.
    #[error("no process could be watched")]
    Nothing,
}

/// What a process is, by its arguments: of drivers and scripts, what they
/// start is recorded, and what they ask of files only where that is wished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A driver, a script or whatever else.
    Other,
    /// `-cc1`.
    Compiler,
    /// `-cc1as`.
    Assembler,
    /// lld.
    Linker,
}

impl Class {
    /// What a program is, by its name and arguments, as the recorder tells it.
    #[must_use]
    pub fn from_arguments(words: &[OsString]) -> Self {
        let second = words.get(1).map(|word| word.as_bytes()).unwrap_or_default();
        let name = words.first().and_then(|word| Path::new(word).file_name());
        match second {
            b"-cc1" => Self::Compiler,
            b"-cc1as" => Self::Assembler,
            word if word.starts_with(b"@") => Self::Compiler,
            _ if name.is_some_and(|name| contains(name.as_bytes(), b"lld")) => Self::Linker,
            _ => Self::Other,
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// One program that ran; a process that turned into another counts twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its file.
    pub program: PathBuf,
    /// Its arguments, the program's name first.
    pub arguments: Vec<OsString>,
    /// Where it was when it began.
    pub directory: PathBuf,
    /// What it is.
    pub class: Class,
    /// The libraries that it loaded, by the names that the loader found them
    /// by; the one that watches is not among them.
    pub libraries: Vec<PathBuf>,
}

/// A file at the moment that it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    /// Type and permissions, as `st_mode` has them.
    pub mode: u32,
    /// Which file it is, and when it changed last.
    pub identity: Identity,
}

impl FileState {
    /// Whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }
}

/// What was asked of a path, or done to it. Paths are absolute, as text:
/// links and `..` are as they were given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum What {
    /// Opened.
    Open {
        /// As `open` takes them.
        flags: u32,
        /// The file itself, without links, if there was one.
        real: Option<PathBuf>,
    },
    /// `stat`.
    Stat,
    /// `lstat`.
    Lstat,
    /// Whether it may be used so.
    Access(u32),
    /// What a symbolic link holds.
    Readlink(Option<PathBuf>),
    /// What the path is without links.
    Realpath(Option<PathBuf>),
    /// What is in a directory.
    List,
    /// The file system that it lies on.
    FileSystem,
    /// Started as a program.
    Execute,
    /// Removed.
    Remove,
    /// Given this name.
    Rename(PathBuf),
    /// Made as another name of this file.
    Link(PathBuf),
    /// Made as a symbolic link that holds this.
    Symlink(PathBuf),
    /// Made.
    Make,
    /// Mode, owner, times or length changed.
    Change,
}

impl What {
    /// Whether it changes what lies there.
    ///
    /// Source: Linux, `include/uapi/asm-generic/fcntl.h`.
    #[must_use]
    pub fn writes(&self) -> bool {
        const WRITING: u32 = 0o3 | 0o100 | 0o1000; // O_ACCMODE, O_CREAT, O_TRUNC
        match self {
            Self::Open { flags, .. } => flags & WRITING != 0,
            Self::Remove
            | Self::Rename(_)
            | Self::Link(_)
            | Self::Symlink(_)
            | Self::Make
            | Self::Change => true,
            Self::Stat
            | Self::Lstat
            | Self::Access(_)
            | Self::Readlink(_)
            | Self::Realpath(_)
            | Self::List
            | Self::FileSystem
            | Self::Execute => false,
        }
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Which of [`Record::processes`] asked.
    pub process: usize,
    /// The path, absolute.
    pub path: PathBuf,
    /// What was asked.
    pub what: What,
    /// Why it was refused, as `errno` has it.
    pub error: Option<i32>,
    /// The file, where the call tells or opened it.
    pub file: Option<FileState>,
}

impl Ask {
    /// Whether the answer is that there is no such file.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        const NO_SUCH_FILE: i32 = 2;
        const NOT_A_DIRECTORY: i32 = 20;
        matches!(self.error, Some(NO_SUCH_FILE | NOT_A_DIRECTORY))
    }
}

/// What the processes of a run asked of the file system, in the order of
/// their answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The programs that ran.
    pub processes: Vec<Process>,
    /// What those asked that are no drivers, or all of them where that was
    /// wished.
    pub asks: Vec<Ask>,
    /// Whether a compiler's heap was not the preloaded one alone: what it made may
    /// differ from run to run.
    pub heap_was_short: bool,
}

/// What to say of such a record.
pub const SHORT_HEAP: &str = "a limit of memory (`ulimit -v` or `-d`) left no room for the heap that \
    gives equal sources equal bytes: raise it to build what can be kept";

impl Record {
    /// The regular files that were opened, by the names that they were opened
    /// by.
    pub fn read(&self) -> impl Iterator<Item = PathBuf> {
        const REGULAR: u32 = 0o100_000;
        let is_regular = |file: FileState| file.mode & 0o170_000 == REGULAR;
        let opened = self.asks.iter().filter(move |ask| {
            matches!(ask.what, What::Open { .. })
                && !ask.what.writes()
                && ask.file.is_some_and(is_regular)
        });
        opened.map(|ask| ask.path.clone())
    }
}
