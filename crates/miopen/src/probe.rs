//! The probe: started through the library's loader in a clean environment, and controlled over
//! sockets.

mod answer;
mod protocol;

use std::io::{self, BufRead as _, BufReader, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use gfxpack_model::probe_line::line;
use gfxpack_model::{Error, ErrorKind, Result};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

pub(crate) use answer::{ProbeAnswer, Step};
pub(crate) use protocol::worded;

use gfxpack_stock_library::{CANCELLED, DeadlineReader, ProbeProcess};

use crate::failure::Failure;
use crate::problem::Problem;
use crate::setup::Setup;

/// Longer than any library takes to load and read its databases.
const START_LIMIT: Duration = Duration::from_secs(600);
/// The probe itself ends problems that take too long; after this additional time it is assumed to
/// be dead.
const GRACE: Duration = Duration::from_secs(60);

/// The solvers that a search tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Solvers {
    /// Every applicable solver.
    All,
    /// The solvers that the library itself would try.
    Natural,
    /// The solver with that name.
    Only(&'static str),
}

/// The kernels that the stand-in has, besides those in real databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    All,
    /// All but those that [`AskOptions::withholds`](crate::AskOptions).
    Compilable,
    None,
}

/// The error of a request that the caller cancelled.
pub(crate) fn cancelled_error() -> Error {
    Error::without_hint(ErrorKind::Interrupted, "cancelled")
}

#[derive(Debug)]
pub(crate) struct Probe {
    process: ProbeProcess,
    /// The library's version, as it reports it.
    pub(crate) version: String,
}

/// The request to a worker for these steps with a problem in the form of [`worded`].
pub(crate) fn request(answers: Answers, steps: &[Step], problem: &str) -> Vec<u8> {
    let answers = match answers {
        Answers::All => "all",
        Answers::Compilable => "compilable",
        Answers::None => "none",
    };
    let steps: Vec<_> = steps.iter().map(|step| step.name()).collect();
    line(&["ask", answers, &steps.join(","), problem])
}

impl Probe {
    /// Starts a probe, which loads the library.
    ///
    /// # Errors
    /// If the library can't be loaded, or `cancelled` returns true meanwhile.
    pub(crate) fn start(setup: &Setup<'_>, cancelled: &dyn Fn() -> bool) -> Result<Self> {
        let probe = &setup.options.probe;
        let directory = setup.create_directory(None)?;
        let command = setup.command(&directory, probe, None);
        let mut process = ProbeProcess::start(probe, command, directory)?;
        let hello = send(setup, &process).and_then(|()| {
            let deadline = Instant::now() + START_LIMIT;
            let patient = DeadlineReader::new(&process.socket, deadline, cancelled)?;
            let mut line = Vec::new();
            BufReader::new(patient).read_until(b'\n', &mut line)?;
            Ok(line)
        });
        match hello {
            Err(error) if error.kind() == CANCELLED => Err(cancelled_error()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(process.not_loaded("it takes too long"))
            }
            // If the probe has ended, there is no message.
            hello => {
                let Some(version) = process.version(&hello.unwrap_or_default())? else {
                    let status = process.wait()?;
                    return Err(process.early_end(status));
                };
                Ok(Self { process, version })
            }
        }
    }

    /// A connection to a new worker.
    pub(crate) fn worker(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut room);
        let fds = [theirs.as_fd()];
        assert!(rights.push(SendAncillaryMessage::ScmRights(&fds)), "there is room for one");
        sendmsg(&self.process.socket, &[IoSlice::new(b"w")], &mut rights, SendFlags::NOSIGNAL)?;
        Ok(ours)
    }

    /// Whether the process is still running.
    pub(crate) fn is_running(&self) -> bool {
        self.process.is_running()
    }
}

/// Sends a [`request`] to a worker, and waits for the whole answer. After [`Failure::Lost`],
/// [`Failure::Overdue`] and [`Failure::Probe`] the worker can't be used any more.
///
/// # Errors
/// Only if `cancelled` returns true meanwhile.
pub(crate) fn ask(
    mut worker: &UnixStream,
    request: &[u8],
    time_limit: Duration,
    cancelled: &dyn Fn() -> bool,
) -> Result<ProbeAnswer> {
    let answer = worker.write_all(request).and_then(|()| {
        let deadline = Instant::now() + time_limit + GRACE;
        let patient = DeadlineReader::new(worker, deadline, cancelled)?;
        // Nothing follows the end of an answer, so nothing stays in the buffer.
        ProbeAnswer::read(&mut BufReader::with_capacity(1 << 16, patient))
    });
    answer.or_else(|error| {
        Ok(ProbeAnswer::ended(match error.kind() {
            CANCELLED => return Err(cancelled_error()),
            io::ErrorKind::TimedOut => Failure::Overdue,
            io::ErrorKind::InvalidData => Failure::Probe("the probe's answer can't be read".into()),
            _ => Failure::Lost,
        }))
    })
}

/// Tells the probe which library to load, and what to do then.
fn send(setup: &Setup<'_>, probe: &ProbeProcess) -> io::Result<()> {
    let Setup { options, phase, .. } = setup;
    let mut lines = line(&["kernels", if setup.real_kernels { "real" } else { "answered" }]);
    let solvers = match phase.solvers {
        Solvers::All => "all",
        Solvers::Natural => "natural",
        Solvers::Only(name) => name,
    };
    lines.extend(line(&["solvers", solvers]));
    if let Some(find_db) = &setup.find_db {
        lines.extend(line(&[b"find-db", find_db.as_os_str().as_bytes()]));
    }
    lines.extend(setup.withheld);
    lines.extend(line(&["limit", &options.time_limit.as_secs().max(1).to_string()]));
    let Ok(Problem::Convolution(warm_up)) = phase.warm_up.parse() else {
        unreachable!("a convolution: {}", phase.warm_up)
    };
    lines.extend(line(&["warm-up", &worded(&warm_up)]));
    probe.load(setup.library, &setup.architecture, setup.compute_units, &lines)
}
