//! A record as it is read: `preload/record.h` says how it is written.
//!
//! Nothing is guessed and nothing skipped. Whatever does not read as one whole
//! record of processes that all ended by themselves is an [`Unwatched`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Bytes before the paths that may be written and read, which entries follow.
pub(super) const HEAD: usize = 64;
/// Bytes of an entry before its text.
const ENTRY: usize = 72;
const MAGIC: u64 = 0x6863_7461_772d_7867;
const VERSION: u32 = 2;

const WISH_ALL: u32 = 1;
const WISH_BOUNDS: u32 = 2;
const WISH_LANDLOCK: u32 = 4;
const WISH_LANDLOCK_ALL: u32 = 8;

const LACK_ROOM: u32 = 1;
const LACK_UNTOLD: u32 = 2;

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
    /// A path or a command line could not be told.
    #[error("a path could not be told")]
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
    pub fn of(words: &[OsString]) -> Self {
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
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Time of the last modification, in nanoseconds since the epoch.
    pub modified: i64,
    /// Time of the last change of its inode, likewise.
    pub changed: i64,
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
}

impl Record {
    /// Reads a record from its beginning to what is used of it; `limit` is
    /// how long it was allowed to become.
    ///
    /// # Errors
    /// [`Unwatched`] where it may not tell everything.
    pub fn parse(bytes: &[u8], limit: u64) -> Result<Self, Unwatched> {
        let used = used(bytes, limit)?;
        if used != bytes.len() {
            return Err(Unwatched::Damaged { at: used.min(bytes.len()) });
        }
        let (lacks, count) = (number(bytes, 12), number(bytes, 36));
        let mut reader = Reader { all: number(bytes, 40) & WISH_ALL != 0, ..Reader::default() };
        let (mut at, mut read) = (begin(bytes), 0);
        while at < used {
            let entry = Entry::parse(bytes, at)?;
            at += entry.length;
            read += 1;
            reader.take(&entry)?;
        }
        if read != count {
            return Err(Unwatched::Damaged { at });
        }
        match lacks {
            0 => reader.finish(),
            LACK_UNTOLD => Err(Unwatched::Untold("a rule of openat2".to_owned())),
            _ => Err(Unwatched::Unnamed),
        }
    }

    /// The asks of processes of a class.
    pub fn of(&self, class: Class) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(move |ask| self.processes[ask.process].class == class)
    }
}

/// What a record says before its entries.
#[derive(Default)]
pub(super) struct Head<'a> {
    /// Whether drivers tell what they ask.
    pub(super) all: bool,
    /// Absolute and without links.
    pub(super) writable: Option<&'a [PathBuf]>,
    /// Likewise.
    pub(super) readable: Option<&'a [PathBuf]>,
    /// Whether the kernel is to hold compilers to that, and all others.
    pub(super) landlock: bool,
    pub(super) landlock_all: bool,
}

impl Head<'_> {
    /// An empty record.
    pub(super) fn bytes(&self, limit: u64) -> Vec<u8> {
        let wishes = [
            (self.all, WISH_ALL),
            (self.writable.is_some(), WISH_BOUNDS),
            (self.landlock, WISH_LANDLOCK),
            (self.landlock_all, WISH_LANDLOCK_ALL),
        ];
        let wishes: u32 = wishes.iter().filter(|(wished, _)| *wished).map(|(_, wish)| wish).sum();
        let list = |paths: Option<&[PathBuf]>| -> Vec<u8> {
            let paths = paths.unwrap_or_default().iter();
            paths.flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect()
        };
        let (writable, readable) = (list(self.writable), list(self.readable));
        let length = |list: &[u8]| u32::try_from(list.len()).expect("paths are shorter");
        let mut head = vec![0; HEAD];
        head[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        head[8..12].copy_from_slice(&VERSION.to_ne_bytes());
        head[16..24].copy_from_slice(&limit.to_ne_bytes());
        head[40..44].copy_from_slice(&wishes.to_ne_bytes());
        head[44..48].copy_from_slice(&length(&writable).to_ne_bytes());
        head[48..52].copy_from_slice(&length(&readable).to_ne_bytes());
        head.extend([writable, readable].concat());
        head.resize(begin(&head), 0);
        let used = head.len() as u64;
        head[24..32].copy_from_slice(&used.to_ne_bytes());
        head
    }
}

/// Where the first entry of a record begins.
fn begin(bytes: &[u8]) -> usize {
    let lists = number(bytes, 44) as usize + number(bytes, 48) as usize;
    (HEAD + lists).next_multiple_of(8)
}

/// How many bytes of a record are used, by its head.
pub(super) fn used(bytes: &[u8], limit: u64) -> Result<usize, Unwatched> {
    let damaged = |at| Unwatched::Damaged { at };
    if bytes.len() < HEAD || long(bytes, 0) != MAGIC || number(bytes, 8) != VERSION {
        return Err(damaged(0));
    }
    let (lacks, used, pending) = (number(bytes, 12), long(bytes, 24), number(bytes, 32));
    if long(bytes, 16) != limit || used < begin(bytes) as u64 {
        return Err(damaged(16));
    }
    if lacks & LACK_ROOM != 0 || used > limit {
        return Err(Unwatched::Full);
    }
    if pending != 0 {
        return Err(Unwatched::CutShort(pending));
    }
    usize::try_from(used).map_err(|_| damaged(24))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

struct Entry<'a> {
    at: usize,
    length: usize,
    kind: u8,
    error: Option<i32>,
    pid: u32,
    argument: u32,
    file: Option<FileState>,
    first: &'a [u8],
    second: &'a [u8],
}

impl<'a> Entry<'a> {
    fn parse(bytes: &'a [u8], at: usize) -> Result<Self, Unwatched> {
        let damaged = || Unwatched::Damaged { at };
        let entry = bytes.get(at..at + ENTRY).ok_or_else(damaged)?;
        let (length, first, second) =
            (number(entry, 0) as usize, number(entry, 20) as usize, number(entry, 24) as usize);
        let whole = ENTRY.checked_add(first).and_then(|sum| sum.checked_add(second));
        if whole.is_none_or(|whole| length != whole.next_multiple_of(8)) {
            return Err(damaged());
        }
        let text = bytes.get(at + ENTRY..at + length).ok_or_else(damaged)?;
        let (first, rest) = text.split_at(first);
        let error = u16::from_ne_bytes([entry[6], entry[7]]);
        let file = FileState {
            mode: number(entry, 16),
            device: long(entry, 32),
            inode: long(entry, 40),
            size: long(entry, 48),
            modified: long(entry, 56).cast_signed(),
            changed: long(entry, 64).cast_signed(),
        };
        Ok(Self {
            at,
            length,
            kind: entry[4],
            error: (error != 0).then_some(i32::from(error)),
            pid: number(entry, 8),
            argument: number(entry, 12),
            file: match entry[5] {
                0 => None,
                1 => Some(file),
                _ => return Err(damaged()),
            },
            first,
            second: &rest[..second],
        })
    }

    fn damaged(&self) -> Unwatched {
        Unwatched::Damaged { at: self.at }
    }

    /// Text that must be a path.
    fn path(&self, text: &[u8]) -> Result<PathBuf, Unwatched> {
        match text.is_empty() || text.contains(&0) {
            true => Err(self.damaged()),
            false => Ok(PathBuf::from(OsStr::from_bytes(text))),
        }
    }

    fn maybe_path(&self, text: &[u8]) -> Result<Option<PathBuf>, Unwatched> {
        if text.is_empty() { Ok(None) } else { self.path(text).map(Some) }
    }
}

/// Where a process stands while its entries are read.
struct State {
    process: usize,
    directory: PathBuf,
    ended: bool,
}

/// A program that a process is about to turn into.
struct Turn {
    /// Who asked for it.
    process: usize,
    program: PathBuf,
}

#[derive(Default)]
struct Reader {
    /// Whether what drivers ask is told.
    all: bool,
    processes: Vec<Process>,
    asks: Vec<Ask>,
    states: BTreeMap<u32, State>,
    /// By the number of the process, which may be a copy by vfork that nothing
    /// else is known of.
    turns: BTreeMap<u32, Turn>,
    /// What was started, by number.
    spawned: Vec<(u32, PathBuf)>,
    /// Lines that shells were started with.
    shells: Vec<OsString>,
    /// Programs that announced themselves in processes that were not known.
    arrived: Vec<usize>,
}

impl Reader {
    fn take(&mut self, entry: &Entry<'_>) -> Result<(), Unwatched> {
        match entry.kind {
            1 => self.program(entry),
            2 => self.fork(entry),
            3 => {
                let directory = entry.path(entry.first)?;
                let state = self.state(entry)?;
                state.directory.clone_from(&directory);
                let process = state.process;
                let began = &mut self.processes[process].directory;
                if began.as_os_str().is_empty() {
                    *began = directory;
                }
                Ok(())
            }
            4 => {
                let process = self.state(entry)?.process;
                let library = entry.path(entry.first)?;
                let libraries = &mut self.processes[process].libraries;
                if !libraries.contains(&library) {
                    libraries.push(library);
                }
                Ok(())
            }
            5 => {
                // One by vfork that turned into nothing was never known.
                if let Some(state) = self.states.get_mut(&entry.pid) {
                    state.ended = true;
                }
                Ok(())
            }
            6 => self.turn(entry),
            7 => {
                let turn = self.turns.remove(&entry.pid).ok_or_else(|| entry.damaged())?;
                let Turn { process, program } = turn;
                self.executed(process, program, entry.error);
                Ok(())
            }
            8 | 10 => self.start(entry),
            9 => Err(Unwatched::Untold(String::from_utf8_lossy(entry.first).into_owned())),
            32..=39 | 64..=69 => self.ask(entry),
            _ => Err(entry.damaged()),
        }
    }

    fn state(&mut self, entry: &Entry<'_>) -> Result<&mut State, Unwatched> {
        self.states.get_mut(&entry.pid).ok_or_else(|| entry.damaged())
    }

    fn program(&mut self, entry: &Entry<'_>) -> Result<(), Unwatched> {
        let class = match entry.argument {
            0 => Class::Other,
            1 => Class::Compiler,
            2 => Class::Assembler,
            3 => Class::Linker,
            _ => return Err(entry.damaged()),
        };
        let arguments = entry.second.strip_suffix(&[0]).ok_or_else(|| entry.damaged())?;
        let arguments = arguments.split(|&byte| byte == 0);
        // Numbers come again; what is new in a process that goes on is a turn
        // that it did not tell.
        let goes_on = self.states.get(&entry.pid).is_some_and(|state| !state.ended);
        match self.turns.remove(&entry.pid) {
            Some(Turn { process, program }) => self.executed(process, program, None),
            None if goes_on => return Err(entry.damaged()),
            None => self.arrived.push(self.processes.len()),
        }
        self.begin(
            entry.pid,
            Process {
                pid: entry.pid,
                program: entry.path(entry.first)?,
                arguments: arguments.map(|word| OsStr::from_bytes(word).to_owned()).collect(),
                directory: PathBuf::new(),
                class,
                libraries: Vec::new(),
            },
            PathBuf::new(),
        );
        Ok(())
    }

    fn fork(&mut self, entry: &Entry<'_>) -> Result<(), Unwatched> {
        let parent = self.states.get(&entry.argument).ok_or_else(|| entry.damaged())?;
        let process = Process { pid: entry.pid, ..self.processes[parent.process].clone() };
        self.begin(entry.pid, process, entry.path(entry.first)?);
        Ok(())
    }

    /// A process is about to be another program.
    fn turn(&mut self, entry: &Entry<'_>) -> Result<(), Unwatched> {
        // A copy by vfork says nothing before, and is where its parent is.
        let own = self.states.get(&entry.pid).filter(|state| !state.ended);
        let state = own.or_else(|| self.states.get(&entry.argument));
        let state = state.ok_or_else(|| entry.damaged())?;
        let program = match entry.first.is_empty() {
            true => state.directory.clone(),
            false => absolute(&state.directory, &entry.path(entry.first)?, entry)?,
        };
        self.turns.insert(entry.pid, Turn { process: state.process, program });
        Ok(())
    }

    /// A process started another one.
    fn start(&mut self, entry: &Entry<'_>) -> Result<(), Unwatched> {
        let state = self.states.get(&entry.pid).ok_or_else(|| entry.damaged())?;
        let process = state.process;
        let program = absolute(&state.directory, &entry.path(entry.first)?, entry)?;
        self.executed(process, program.clone(), entry.error);
        match (entry.error, entry.kind) {
            (Some(_), _) => {}
            (None, 8) => self.spawned.push((entry.argument, program)),
            (None, _) => self.shells.push(OsStr::from_bytes(entry.second).to_owned()),
        }
        Ok(())
    }

    /// Whether what a process asks of files is told.
    fn tells(&self, process: usize) -> bool {
        self.all || self.processes[process].class != Class::Other
    }

    fn executed(&mut self, process: usize, path: PathBuf, error: Option<i32>) {
        if self.tells(process) {
            self.asks.push(Ask { process, path, what: What::Execute, error, file: None });
        }
    }

    fn begin(&mut self, pid: u32, process: Process, directory: PathBuf) {
        let state = State { process: self.processes.len(), directory, ended: false };
        self.processes.push(process);
        self.states.insert(pid, state);
    }

    fn ask(&mut self, entry: &Entry<'_>) -> Result<(), Unwatched> {
        let state = self.states.get(&entry.pid).ok_or_else(|| entry.damaged())?;
        let found = entry.error.is_none();
        let absolute = |path: PathBuf| absolute(&state.directory, &path, entry);
        let second = entry.maybe_path(entry.second)?;
        let needed = || second.clone().ok_or_else(|| entry.damaged());
        let what = match entry.kind {
            32 if found && (entry.file.is_none() || second.is_none()) => {
                return Err(entry.damaged());
            }
            32 => What::Open { flags: entry.argument, real: second },
            33 => What::Stat,
            34 => What::Lstat,
            35 => What::Access(entry.argument),
            36 => What::Readlink(second),
            37 => What::Realpath(second),
            38 => What::List,
            39 => What::FileSystem,
            64 => What::Remove,
            65 => What::Rename(absolute(needed()?)?),
            66 => What::Link(absolute(needed()?)?),
            67 => What::Make,
            68 => What::Change,
            69 => What::Symlink(needed()?),
            _ => return Err(entry.damaged()),
        };
        // The system refuses an empty path as it does an absent one.
        let path = match entry.first.is_empty() && entry.error.is_some() {
            true => state.directory.clone(),
            false => absolute(entry.path(entry.first)?)?,
        };
        let (process, error, file) = (state.process, entry.error, entry.file);
        self.asks.push(Ask { process, path, what, error, file });
        Ok(())
    }

    fn finish(mut self) -> Result<Record, Unwatched> {
        if let Some((_, turn)) = self.turns.pop_first() {
            return Err(Unwatched::Silent(turn.program));
        }
        let said = |pid: u32| self.processes.iter().any(|process| process.pid == pid);
        if let Some((_, program)) = self.spawned.iter().find(|(pid, _)| !said(*pid)) {
            return Err(Unwatched::Silent(program.clone()));
        }
        if let Some(shell) = self.silent_shell() {
            return Err(Unwatched::Silent(shell));
        }
        if let Some(state) = self.states.values().find(|state| !state.ended) {
            return Err(Unwatched::NoEnd(self.processes[state.process].program.clone()));
        }
        if self.processes.is_empty() {
            return Err(Unwatched::Nothing);
        }
        Ok(Record { processes: self.processes, asks: self.asks })
    }
}

impl Reader {
    /// A shell that did not announce itself. Its number is not told, so its
    /// arguments must be those of one that is nobody else's.
    ///
    /// Source: glibc, `sysdeps/posix/system.c` and `libio/iopopen.c`: `sh -c
    /// LINE`, since 2.38 `sh -c -- LINE`.
    fn silent_shell(&self) -> Option<PathBuf> {
        let spawned = |pid: u32| self.spawned.iter().any(|(other, _)| *other == pid);
        let arrived = self.arrived.iter().skip(1).map(|&index| &self.processes[index]);
        let mut lines: Vec<&OsStr> = arrived
            .filter(|process| !spawned(process.pid))
            .filter_map(|process| match process.arguments.as_slice() {
                [name, option, line] if name == "sh" && option == "-c" => Some(line.as_os_str()),
                [name, option, end, line] if name == "sh" && option == "-c" && end == "--" => {
                    Some(line.as_os_str())
                }
                _ => None,
            })
            .collect();
        self.shells.iter().find_map(|line| match lines.iter().position(|other| other == line) {
            Some(at) => {
                lines.swap_remove(at);
                None
            }
            None => Some(PathBuf::from("/bin/sh")),
        })
    }
}

fn absolute(directory: &Path, path: &Path, entry: &Entry<'_>) -> Result<PathBuf, Unwatched> {
    let joined = directory.join(path);
    if joined.is_absolute() { Ok(joined) } else { Err(entry.damaged()) }
}

#[cfg(test)]
mod tests;
