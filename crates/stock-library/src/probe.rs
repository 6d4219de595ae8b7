//! What starting a probe takes: a program of gfxpack that loads the library
//! behind stand-ins, by the library's own dynamic loader.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::library::Library;

/// How often a wait is interrupted to see whether it is still wanted.
const TICK: Duration = Duration::from_millis(100);
/// Where files lie in memory.
const SHARED_MEMORY: &str = "/dev/shm";

impl Library {
    /// Starts a probe with nothing in its environment, in which this library is
    /// found, with empty libraries out of `stubs` before all others.
    #[must_use]
    pub fn probe_command(&self, probe: &Path, stubs: &Path) -> Command {
        self.command(probe, stubs, None)
    }

    /// The same for any program, with a library that is loaded before all
    /// others.
    #[must_use]
    pub fn command(&self, program: &Path, stubs: &Path, preload: Option<&Path>) -> Command {
        let mut search_path = stubs.as_os_str().to_owned();
        for path in &self.search_path {
            search_path.push(":");
            search_path.push(path);
        }
        #[expect(clippy::disallowed_methods, reason = "what is started is a part of gfxpack")]
        let mut command = Command::new(self.loader.as_deref().unwrap_or(program));
        command.env_clear();
        if self.loader.is_some() {
            if let Some(preload) = preload {
                command.arg("--preload").arg(preload);
            }
            command.arg("--library-path").arg(search_path).arg(program);
        } else {
            command.env("LD_LIBRARY_PATH", search_path);
            if let Some(preload) = preload {
                command.env("LD_PRELOAD", preload);
            }
        }
        command
    }
}

/// The error of a read that is not wanted any more; one that `BufRead` does
/// not take for a reason to try again.
pub const CANCELLED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Reads from a socket, until a time or until it is not wanted any more.
#[derive(Clone, Copy)]
pub struct Patient<'a> {
    socket: &'a UnixStream,
    deadline: Instant,
    cancelled: &'a dyn Fn() -> bool,
}

impl<'a> Patient<'a> {
    /// Over a socket of this process.
    ///
    /// # Errors
    /// The system's.
    pub fn new(
        socket: &'a UnixStream,
        deadline: Instant,
        cancelled: &'a dyn Fn() -> bool,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(TICK))?;
        Ok(Self { socket, deadline, cancelled })
    }
}

impl Patient<'_> {
    /// Waits until that time from now on.
    pub fn wait_until(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.socket.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if (self.cancelled)() {
                        return Err(CANCELLED.into());
                    }
                    if Instant::now() >= self.deadline {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                read => return read,
            }
        }
    }
}

/// A directory of a probe's own, in memory where there is room, otherwise below `scratch`.
///
/// # Errors
/// The system's.
pub fn temporary_directory(scratch: &Path) -> io::Result<TempDir> {
    let create = |place: &Path| tempfile::Builder::new().prefix("gfxpack-probe-").tempdir_in(place);
    if is_in_memory(Path::new(SHARED_MEMORY))
        && let Ok(directory) = create(Path::new(SHARED_MEMORY))
    {
        return Ok(directory);
    }
    create(scratch)
}

/// Whether files there lie in memory, and there is room for those of a probe.
fn is_in_memory(path: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    const ENOUGH: u64 = 32 << 20;
    rustix::fs::statfs(path).is_ok_and(|system| {
        #[expect(clippy::unnecessary_cast, reason = "the types differ between processors")]
        let (kind, block) = (system.f_type as i64, system.f_bsize as u64);
        kind == TMPFS_MAGIC && system.f_bavail.saturating_mul(block) >= ENOUGH
    })
}
