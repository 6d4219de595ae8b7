//! The probe: started through the library's loader, in an environment of its
//! own, and asked over sockets.

mod answer;
mod protocol;

use std::io::{self, BufRead as _, BufReader, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gfxpack_model::probe_line::line;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

pub(crate) use answer::{Answer, Step};
pub(crate) use protocol::worded;

use gfxpack_stock_library::{CANCELLED, DeadlineReader, ProbeProcess};

use crate::error::AskError;
use crate::failure::Failure;
use crate::library::MIOPEN;
use crate::setup::Setup;

/// Longer than any library takes to load and read its databases.
const START_LIMIT: Duration = Duration::from_secs(600);
/// The probe ends what takes too long itself; this much later it is taken for
/// gone.
const GRACE: Duration = Duration::from_secs(60);

/// What a probe is started for.
#[derive(Debug, Clone)]
pub(crate) struct ProbeSettings<'a> {
    pub(crate) setup: Setup<'a>,
    /// The find database of the step `hit`.
    pub(crate) find_db: Option<PathBuf>,
    pub(crate) solvers: Solvers,
    /// Convolutions that processes have worked on, from which others are
    /// forked.
    pub(crate) stems: &'a [String],
}

/// What a search tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Solvers {
    /// Every applicable one.
    All,
    /// Those that the library itself would try.
    Natural,
    /// The one of that name.
    Only(&'static str),
}

/// A running probe.
#[derive(Debug)]
pub(crate) struct Probe {
    process: ProbeProcess,
    /// The library's version, as it tells it.
    pub(crate) version: String,
    time_limit: Duration,
}

/// A worker of a probe.
#[derive(Debug)]
pub(crate) struct Worker {
    socket: UnixStream,
    time_limit: Duration,
}

/// What is asked of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    /// The process to fork from: 0, or the number of a stem.
    pub(crate) stem: usize,
    /// Whether a kernel that no database has is answered all the same.
    pub(crate) go_on: bool,
    pub(crate) steps: &'a [Step],
    /// As [`worded`] gives it.
    pub(crate) problem: &'a str,
}

impl Probe {
    /// Starts a probe, which loads the library.
    ///
    /// # Errors
    /// [`AskError`]; [`AskError::Cancelled`] where `cancelled` says so meanwhile.
    pub(crate) fn start(
        settings: &ProbeSettings<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, AskError> {
        let setup = &settings.setup;
        let directory = setup.create_directory(None)?;
        let command = setup.command(&directory, setup.probe, None);
        let mut process = ProbeProcess::start(&MIOPEN, setup.probe, command, directory)?;
        let hello = settings.send(&process).and_then(|()| {
            let deadline = Instant::now() + START_LIMIT;
            let patient = DeadlineReader::new(&process.socket, deadline, cancelled)?;
            let mut line = Vec::new();
            BufReader::new(patient).read_until(b'\n', &mut line)?;
            Ok(line)
        });
        match hello {
            Err(error) if error.kind() == CANCELLED => Err(AskError::Cancelled),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(process.load_error("it takes too long").into())
            }
            // Where the probe is gone, so is what it would have said.
            hello => {
                let Some(version) = process.version(&hello.unwrap_or_default())? else {
                    let status = process.wait()?;
                    return Err(process.early_end(status).into());
                };
                Ok(Self { process, version, time_limit: setup.time_limit })
            }
        }
    }

    /// A new worker.
    ///
    /// # Errors
    /// The system's, where the probe is gone.
    pub(crate) fn worker(&self) -> io::Result<Worker> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut room);
        let fds = [theirs.as_fd()];
        assert!(rights.push(SendAncillaryMessage::ScmRights(&fds)), "there is room for one");
        sendmsg(&self.process.socket, &[IoSlice::new(b"w")], &mut rights, SendFlags::NOSIGNAL)?;
        Ok(Worker { socket: ours, time_limit: self.time_limit })
    }

    /// Whether the process is still there.
    pub(crate) fn is_running(&mut self) -> bool {
        self.process.is_running()
    }
}

impl Worker {
    /// Asks, and waits for the whole answer. After [`Failure::Lost`],
    /// [`Failure::Overdue`] and [`Failure::Probe`] the worker is of no more use.
    ///
    /// # Errors
    /// [`AskError::Cancelled`] where `cancelled` says so meanwhile.
    pub(crate) fn ask(
        &mut self,
        request: &Request<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Answer, AskError> {
        match self.try_ask(request, cancelled) {
            Ok(answer) => Ok(answer),
            Err(error) if error.kind() == CANCELLED => Err(AskError::Cancelled),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Ok(Answer::ended(Failure::Overdue))
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Ok(Answer::ended(Failure::Probe("the probe's answer can't be read".into())))
            }
            Err(_) => Ok(Answer::ended(Failure::Lost)),
        }
    }

    fn try_ask(
        &mut self,
        request: &Request<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> io::Result<Answer> {
        let steps: Vec<_> = request.steps.iter().map(|step| step.name()).collect();
        self.socket.write_all(&line(&[
            "ask",
            &request.stem.to_string(),
            if request.go_on { "go-on" } else { "stop" },
            &steps.join(","),
            request.problem,
        ]))?;
        // A stem works on its own problem before the first.
        let deadline = Instant::now() + self.time_limit * 2 + GRACE;
        let patient = DeadlineReader::new(&self.socket, deadline, cancelled)?;
        // Nothing is said after the end, so that nothing stays in the buffer.
        Answer::read(&mut BufReader::with_capacity(1 << 16, patient))
    }
}

impl ProbeSettings<'_> {
    /// Tells the probe what to load, and what to do then.
    fn send(&self, probe: &ProbeProcess) -> io::Result<()> {
        let setup = &self.setup;
        let mut lines = line(&["kernels", if setup.real_kernels { "real" } else { "answered" }]);
        let solvers = match self.solvers {
            Solvers::All => "all",
            Solvers::Natural => "natural",
            Solvers::Only(name) => name,
        };
        lines.extend(line(&["solvers", solvers]));
        if let Some(find_db) = &self.find_db {
            lines.extend(line(&[b"find-db", find_db.as_os_str().as_bytes()]));
        }
        lines.extend(line(&["limit", &setup.time_limit.as_secs().max(1).to_string()]));
        for stem in self.stems {
            lines.extend(line(&["stem", "search", stem]));
        }
        probe.load(setup.library, &setup.architecture, setup.compute_units, &lines)
    }
}
