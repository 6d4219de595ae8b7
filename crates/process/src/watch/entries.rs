//! Parses a record. `preload/record.h` describes the format.
//!
//! Nothing is guessed and nothing skipped. Anything but one complete record of processes that all
//! ended by themselves is a [`WatchError`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::record::{FileAccess, FileStat, Operation, Process, Record, WatchError};
use crate::file_digest::Identity;

/// The length of the head; the list of writable paths, what compilers see, and then the entries
/// follow.
pub(super) const HEAD: usize = 40;
/// The length of an entry without its text.
const ENTRY: usize = 72;
const MAGIC: u64 = 0x6863_7461_772d_7867;
/// Where the head has these.
const USED: usize = 16;
const LACKS: usize = 24;
const WISHES: usize = 28;

const WISH_ALL: u32 = 1;
const WISH_BOUNDS: u32 = 2;
const WISH_LANDLOCK: u32 = 4;
const WISH_VISIBLE: u32 = 8;

const LACK_ROOM: u32 = 1;
const LACK_UNTOLD: u32 = 2;
const LACK_HEAP: u32 = 8;

impl Record {
    /// Parses a record from its beginning to its used length; `limit` is its longest allowed
    /// length.
    ///
    /// # Errors
    /// [`WatchError`] if accesses may be missing.
    pub fn parse(bytes: &[u8], limit: u64) -> Result<Self, WatchError> {
        let used = used(bytes, limit)?;
        if used != bytes.len() {
            return Err(WatchError::Damaged { at: used.min(bytes.len()) });
        }
        let lacks = number(bytes, LACKS);
        let mut reader = Reader { all: number(bytes, WISHES) & WISH_ALL != 0, ..Reader::default() };
        let mut at = begin(bytes);
        while at < used {
            let entry = RecorderEntry::parse(bytes, at)?;
            at += entry.length;
            reader.take(&entry)?;
        }
        let heap_was_short = lacks & LACK_HEAP != 0;
        match lacks & !LACK_HEAP {
            0 => Ok(Self { heap_was_short, ..reader.finish()? }),
            LACK_UNTOLD => Err(WatchError::NotRecordable("the state of an open file".to_owned())),
            _ => Err(WatchError::UnrecordedPath),
        }
    }
}

/// An empty record of at most `limit` bytes. With `all`, file accesses are recorded. The paths that
/// may be written are absolute and without links. With `landlock`, the library makes the kernel
/// confine compilers to these, and to what they see, which is in the library's form.
pub(super) fn empty(
    limit: u64,
    (all, landlock): (bool, bool),
    writable: Option<&[PathBuf]>,
    visible: Option<&[u8]>,
) -> Vec<u8> {
    let wishes = [
        (all, WISH_ALL),
        (writable.is_some(), WISH_BOUNDS),
        (landlock, WISH_LANDLOCK),
        (visible.is_some(), WISH_VISIBLE),
    ];
    let wishes: u32 = wishes.iter().filter(|(wished, _)| *wished).map(|(_, wish)| wish).sum();
    let paths = writable.unwrap_or_default().iter();
    let writable: Vec<u8> =
        paths.flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    let visible = visible.unwrap_or_default();
    let [written, seen] = [writable.as_slice(), visible]
        .map(|list| u32::try_from(list.len()).expect("paths are shorter").to_ne_bytes());
    let mut header = vec![0; HEAD];
    header[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    header[8..16].copy_from_slice(&limit.to_ne_bytes());
    header[WISHES..WISHES + 4].copy_from_slice(&wishes.to_ne_bytes());
    header[32..36].copy_from_slice(&written);
    header[36..40].copy_from_slice(&seen);
    header.extend(writable);
    header.resize(header.len().next_multiple_of(8), 0);
    header.extend(visible);
    header.resize(begin(&header), 0);
    let used = header.len() as u64;
    header[USED..USED + 8].copy_from_slice(&used.to_ne_bytes());
    header
}

/// The position of a record's first entry.
fn begin(bytes: &[u8]) -> usize {
    let [writable, visible] = [32, 36].map(|at| number(bytes, at) as usize);
    ((HEAD + writable).next_multiple_of(8) + visible).next_multiple_of(8)
}

/// The used length of a record, from its head.
pub(super) fn used(bytes: &[u8], limit: u64) -> Result<usize, WatchError> {
    let damaged = |at| WatchError::Damaged { at };
    if bytes.len() < HEAD || long(bytes, 0) != MAGIC {
        return Err(damaged(0));
    }
    let (lacks, used) = (number(bytes, LACKS), long(bytes, USED));
    if long(bytes, 8) != limit || used < begin(bytes) as u64 {
        return Err(damaged(8));
    }
    if lacks & LACK_ROOM != 0 || used > limit {
        return Err(WatchError::Full);
    }
    usize::try_from(used).map_err(|_| damaged(USED))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

struct RecorderEntry<'a> {
    at: usize,
    length: usize,
    kind: u8,
    error: Option<i32>,
    pid: u32,
    argument: u32,
    file: Option<FileStat>,
    first: &'a [u8],
    second: &'a [u8],
}

impl<'a> RecorderEntry<'a> {
    fn parse(bytes: &'a [u8], at: usize) -> Result<Self, WatchError> {
        let damaged = || WatchError::Damaged { at };
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
        let file = FileStat {
            mode: number(entry, 16),
            identity: Identity::new(
                (long(entry, 32), long(entry, 40)),
                long(entry, 48),
                long(entry, 56).cast_signed(),
                long(entry, 64).cast_signed(),
            ),
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

    fn damaged(&self) -> WatchError {
        WatchError::Damaged { at: self.at }
    }

    /// Text that must be a valid path.
    fn path(&self, text: &[u8]) -> Result<PathBuf, WatchError> {
        if text.is_empty() || text.contains(&0) {
            Err(self.damaged())
        } else {
            Ok(PathBuf::from(OsStr::from_bytes(text)))
        }
    }
}

/// The state of a process while its entries are read.
struct ProcessState {
    process: usize,
    directory: PathBuf,
    ended: bool,
}

#[derive(Default)]
struct Reader {
    /// Whether accesses are recorded.
    all: bool,
    processes: Vec<Process>,
    accesses: Vec<FileAccess>,
    states: BTreeMap<u32, ProcessState>,
    /// Programs that processes are about to execute, by process number. The process may be a copy
    /// made by vfork, of which nothing else is recorded.
    pending_execs: BTreeMap<u32, PathBuf>,
    /// Programs that were started, by process number.
    spawned: Vec<(u32, PathBuf)>,
    /// Command lines of shells that were started.
    shells: Vec<OsString>,
    /// Programs that announced themselves in new processes.
    arrived: Vec<usize>,
    /// Those that processes turned into, as they named them.
    executions: Vec<(PathBuf, usize)>,
}

impl Reader {
    fn take(&mut self, entry: &RecorderEntry<'_>) -> Result<(), WatchError> {
        match entry.kind {
            1 => self.program(entry),
            2 => self.fork(entry),
            3 => {
                self.state(entry)?.directory = entry.path(entry.first)?;
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
                // A copy made by vfork that executed no program was never recorded.
                if let Some(state) = self.states.get_mut(&entry.pid) {
                    state.ended = true;
                }
                Ok(())
            }
            6 => self.begin_exec(entry),
            7 => {
                let pending = self.pending_execs.remove(&entry.pid);
                self.executed(pending.ok_or_else(|| entry.damaged())?, entry.error);
                Ok(())
            }
            8 | 10 => self.start(entry),
            9 => Err(WatchError::NotRecordable(String::from_utf8_lossy(entry.first).into_owned())),
            32..=39 | 64 => self.access(entry),
            _ => Err(entry.damaged()),
        }
    }

    fn state(&mut self, entry: &RecorderEntry<'_>) -> Result<&mut ProcessState, WatchError> {
        self.states.get_mut(&entry.pid).ok_or_else(|| entry.damaged())
    }

    fn program(&mut self, entry: &RecorderEntry<'_>) -> Result<(), WatchError> {
        let arguments = entry.second.strip_suffix(&[0]).ok_or_else(|| entry.damaged())?;
        let arguments = arguments.split(|&byte| byte == 0);
        // Process numbers are reused. But a new program in a process that has not ended was
        // executed without an entry.
        let goes_on = self.states.get(&entry.pid).is_some_and(|state| !state.ended);
        match self.pending_execs.remove(&entry.pid) {
            Some(program) => {
                self.executions.push((program.clone(), self.processes.len()));
                self.executed(program, None);
            }
            None if goes_on => return Err(entry.damaged()),
            None => self.arrived.push(self.processes.len()),
        }
        self.begin(
            entry.pid,
            Process {
                pid: entry.pid,
                program: entry.path(entry.first)?,
                arguments: arguments.map(|arg| OsStr::from_bytes(arg).to_owned()).collect(),
                compiles: entry.argument != 0,
                libraries: Vec::new(),
            },
            PathBuf::new(),
        );
        Ok(())
    }

    fn fork(&mut self, entry: &RecorderEntry<'_>) -> Result<(), WatchError> {
        let parent = self.states.get(&entry.argument).ok_or_else(|| entry.damaged())?;
        let process = Process { pid: entry.pid, ..self.processes[parent.process].clone() };
        self.begin(entry.pid, process, entry.path(entry.first)?);
        Ok(())
    }

    /// Handles the entry of a process that is about to execute a program.
    fn begin_exec(&mut self, entry: &RecorderEntry<'_>) -> Result<(), WatchError> {
        // A copy made by vfork has no entries before this one, and its parent's working directory.
        let own = self.states.get(&entry.pid).filter(|state| !state.ended);
        let state = own.or_else(|| self.states.get(&entry.argument));
        let state = state.ok_or_else(|| entry.damaged())?;
        let program = if entry.first.is_empty() {
            state.directory.clone()
        } else {
            absolute(&state.directory, &entry.path(entry.first)?, entry)?
        };
        self.pending_execs.insert(entry.pid, program);
        Ok(())
    }

    /// Handles the entry of a process that started another one.
    fn start(&mut self, entry: &RecorderEntry<'_>) -> Result<(), WatchError> {
        let state = self.states.get(&entry.pid).ok_or_else(|| entry.damaged())?;
        let program = absolute(&state.directory, &entry.path(entry.first)?, entry)?;
        self.executed(program.clone(), entry.error);
        match (entry.error, entry.kind) {
            (Some(_), _) => {}
            (None, 8) => self.spawned.push((entry.argument, program)),
            (None, _) => self.shells.push(OsStr::from_bytes(entry.second).to_owned()),
        }
        Ok(())
    }

    fn executed(&mut self, path: PathBuf, error: Option<i32>) {
        if self.all {
            let operation = Operation::Execute;
            self.accesses.push(FileAccess { path, operation, error, file: None });
        }
    }

    fn begin(&mut self, pid: u32, process: Process, directory: PathBuf) {
        let state = ProcessState { process: self.processes.len(), directory, ended: false };
        self.processes.push(process);
        self.states.insert(pid, state);
    }

    fn access(&mut self, entry: &RecorderEntry<'_>) -> Result<(), WatchError> {
        let state = self.states.get(&entry.pid).ok_or_else(|| entry.damaged())?;
        let found = entry.error.is_none();
        let absolute = |path: PathBuf| absolute(&state.directory, &path, entry);
        let second = Some(entry.second).filter(|text| !text.is_empty());
        let second = second.map(|text| entry.path(text)).transpose()?;
        let operation = match entry.kind {
            32 if found && (entry.file.is_none() || second.is_none()) => {
                return Err(entry.damaged());
            }
            32 => Operation::Open { flags: entry.argument, real: second },
            33 => Operation::Stat,
            34 => Operation::Lstat,
            35 => Operation::Access(entry.argument),
            36 => Operation::Readlink(second),
            37 => Operation::Realpath(second),
            38 => Operation::List,
            39 => Operation::FileSystem,
            64 => Operation::Change,
            _ => return Err(entry.damaged()),
        };
        // The system answers an empty path like an absent one.
        let path = if entry.first.is_empty() && entry.error.is_some() {
            state.directory.clone()
        } else {
            absolute(entry.path(entry.first)?)?
        };
        let mut access = FileAccess { path, operation, error: entry.error, file: entry.file };
        // `a/` and `a/.` are absent if `a` is a file. Comparing paths ignores what follows `a`
        // there, so such a path is stored as `a/..`, which is absent too.
        if access.is_absent()
            && !access.operation.writes()
            && [&b"/"[..], b"/."].iter().any(|end| entry.first.ends_with(end))
        {
            access.path.push("..");
        }
        self.accesses.push(access);
        Ok(())
    }

    fn finish(mut self) -> Result<Record, WatchError> {
        if let Some((_, program)) = self.pending_execs.pop_first() {
            return Err(WatchError::NotWatched(program));
        }
        for (pid, program) in &self.spawned {
            let of_pid = |&index: &usize| self.processes[index].pid == *pid;
            let arrived = self.arrived.iter().copied().find(of_pid);
            let process = arrived.ok_or_else(|| WatchError::NotWatched(program.clone()))?;
            self.executions.push((program.clone(), process));
        }
        if let Some(shell) = self.silent_shell() {
            return Err(WatchError::NotWatched(shell));
        }
        if let Some(state) = self.states.values().find(|state| !state.ended) {
            return Err(WatchError::NotEnded(self.processes[state.process].program.clone()));
        }
        if self.processes.is_empty() {
            return Err(WatchError::Nothing);
        }
        let Self { processes, executions, accesses, .. } = self;
        Ok(Record { processes, executions, accesses, heap_was_short: false })
    }

    /// A shell that did not announce itself. Its process number is not known, so it
    /// is found by its arguments.
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

fn absolute(
    directory: &Path,
    path: &Path,
    entry: &RecorderEntry<'_>,
) -> Result<PathBuf, WatchError> {
    let joined = directory.join(path);
    if joined.is_absolute() { Ok(joined) } else { Err(entry.damaged()) }
}

#[cfg(test)]
mod tests;
