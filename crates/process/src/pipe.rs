//! Reads the output of programs from several pipes at once.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// At most this many bytes of a program's output are kept; the rest is read and dropped.
pub const OUTPUT_LIMIT: usize = 256 * 1024;

/// The last line of output that was cut.
const DROPPED: &str = "[more output was dropped]";

/// Whether output was cut.
pub fn was_cut(output: &str) -> bool {
    output.lines().any(|line| line == DROPPED)
}

/// One of a program's pipes, read when it has data.
#[derive(Debug)]
pub struct Capture {
    pipe: File,
    kept: Vec<u8>,
    dropped: bool,
    open: bool,
}

impl Capture {
    /// Keeps the output, up to [`OUTPUT_LIMIT`] bytes.
    pub fn new(pipe: impl Into<OwnedFd>) -> Self {
        let pipe = File::from(pipe.into());
        Self { pipe, kept: Vec::new(), dropped: false, open: true }
    }

    fn read_once(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        let count = match self.pipe.read(&mut buffer) {
            // The process at the other end of the socket ended before it read our data.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            other => other?,
        };
        self.open = count > 0;
        let room = OUTPUT_LIMIT - self.kept.len();
        self.kept.extend_from_slice(&buffer[..count.min(room)]);
        self.dropped |= count > room;
        Ok(())
    }

    /// The output that was kept.
    pub fn bytes(&self) -> &[u8] {
        &self.kept
    }

    /// Whether the other end may still write.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The kept output as text, with a last line that says so if some was dropped.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.kept).into_owned();
        if self.dropped {
            text.push_str(&format!("\n{DROPPED}\n"));
        }
        text
    }

    /// Drops the kept output.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.dropped = false;
    }
}

/// Waits until one of the pipes has data or is closed, and reads all data that is there.
///
/// # Errors
/// If a pipe can't be read.
pub fn wait_readable(pipes: &mut [&mut Capture], timeout: Duration) -> io::Result<()> {
    if pipes.iter().all(|pipe| !pipe.open) {
        std::thread::sleep(timeout);
        return Ok(());
    }
    let mut timeout = timeout;
    while pipes.iter().any(|pipe| pipe.open) {
        let limit = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let ready: Vec<bool> = {
            // A closed pipe would always be ready.
            let open = pipes.iter().filter(|pipe| pipe.open);
            let mut fds: Vec<_> = open.map(|pipe| PollFd::new(&pipe.pipe, PollFlags::IN)).collect();
            match poll(&mut fds, Some(&limit)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        let open = pipes.iter_mut().filter(|pipe| pipe.open);
        for (pipe, _) in open.zip(&ready).filter(|(_, ready)| **ready) {
            pipe.read_once()?;
        }
        if !ready.contains(&true) {
            return Ok(());
        }
        timeout = Duration::ZERO;
    }
    Ok(())
}
