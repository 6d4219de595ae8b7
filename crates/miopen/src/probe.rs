//! The probe: started through the library's loader, in an environment of its
//! own, and asked over sockets.

mod answer;
mod protocol;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, IoSlice, Read, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

pub(crate) use answer::{Answer, Step};
pub(crate) use protocol::worded;

use gfxpack_stock_library::{CANCELLED, Patient, read_line, write_line};

use crate::error::AskError;
use crate::failure::Failure;
use crate::setup::{Place, Setup};

/// Longer than any library takes to load and read its databases.
const START_LIMIT: Duration = Duration::from_secs(600);
/// The probe ends what takes too long itself; this much later it is taken for
/// gone.
const GRACE: Duration = Duration::from_secs(60);
/// How much of what the loader or the library says is shown.
const MAX_OUTPUT: u64 = 4096;

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
    control: UnixStream,
    process: Child,
    /// The library's version, as it tells it.
    pub(crate) version: String,
    time_limit: Duration,
    // Held until the process is gone.
    _place: Place,
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
        let place = Place::new(setup, None)?;
        let started = |source| AskError::Start { probe: setup.probe.to_owned(), source };
        let (control, theirs) = UnixStream::pair().map_err(started)?;
        let output = place.path().join("output");
        let written = File::create(&output).map_err(AskError::scratch(&output))?;
        let mut command = place.command(setup, setup.probe, None);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(written);
        let process = command.spawn().map_err(started)?;
        // The command holds the other end of the socket.
        drop(command);
        let told = settings.say(&control, &place);
        let mut probe = Self {
            control,
            process,
            version: String::new(),
            time_limit: setup.time_limit,
            _place: place,
        };
        let hello = told.and_then(|()| {
            let deadline = Instant::now() + START_LIMIT;
            let patient = Patient::new(&probe.control, deadline, cancelled)?;
            let mut line = Vec::new();
            BufReader::new(patient).read_until(b'\n', &mut line)?;
            Ok(line)
        });
        match hello {
            Err(error) if error.kind() == CANCELLED => Err(AskError::Cancelled),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(AskError::Load { reason: "it takes too long".into() })
            }
            // Where the probe is gone, so is what it would have said.
            hello => {
                probe.version = probe.greeted(setup.probe, &hello.unwrap_or_default(), &output)?;
                Ok(probe)
            }
        }
    }

    /// The library's version from the probe's first line, or why there is none.
    fn greeted(&mut self, path: &Path, hello: &[u8], output: &Path) -> Result<String, AskError> {
        let fields = read_line(hello);
        let fields: Vec<_> = fields.iter().map(|field| String::from_utf8_lossy(field)).collect();
        let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
        match fields[..] {
            ["ready", env!("CARGO_PKG_VERSION"), library] => Ok(library.to_owned()),
            ["ready", version, _] => {
                Err(AskError::ProbeVersion { probe: path.to_owned(), version: version.to_owned() })
            }
            ["missing", symbol] => Err(AskError::MissingFunction { function: symbol.to_owned() }),
            ["failed", reason] => Err(AskError::Load { reason: reason.to_owned() }),
            _ => {
                // What the loader says, or the library before it dies.
                let started = |source| AskError::Start { probe: path.to_owned(), source };
                let status = self.process.wait().map_err(started)?;
                let mut said = String::new();
                let _ = File::open(output)
                    .and_then(|file| file.take(MAX_OUTPUT).read_to_string(&mut said));
                let said = said.trim();
                let reason = if said.is_empty() { status.to_string() } else { said.to_owned() };
                Err(AskError::Load { reason })
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
        sendmsg(&self.control, &[IoSlice::new(b"w")], &mut rights, SendFlags::NOSIGNAL)?;
        Ok(Worker { socket: ours, time_limit: self.time_limit })
    }

    /// Whether the process is still there.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
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
        let mut words = Vec::new();
        write_line(
            &mut words,
            &[
                b"ask",
                request.stem.to_string().as_bytes(),
                if request.go_on { b"go-on" } else { b"stop" },
                steps.join(",").as_bytes(),
                request.problem.as_bytes(),
            ],
        )?;
        self.socket.write_all(&words)?;
        // A stem works on its own problem before the first.
        let deadline = Instant::now() + self.time_limit * 2 + GRACE;
        let patient = Patient::new(&self.socket, deadline, cancelled)?;
        // Nothing is said after the end, so that nothing stays in the buffer.
        Answer::read(&mut BufReader::with_capacity(1 << 16, patient))
    }
}

impl ProbeSettings<'_> {
    /// Tells the probe what to do before it loads anything.
    fn say(&self, mut to: &UnixStream, place: &Place) -> io::Result<()> {
        let setup = &self.setup;
        let mut words = Vec::new();
        let mut line = |fields: &[&[u8]]| write_line(&mut words, fields);
        line(&[b"library", setup.library.file.as_os_str().as_bytes()])?;
        for stub in &place.stubs {
            line(&[b"stub", stub.as_os_str().as_bytes()])?;
        }
        let units = setup.compute_units.to_string();
        line(&[b"device", setup.architecture.as_bytes(), units.as_bytes()])?;
        if let Some(sqlite) = &place.sqlite {
            line(&[b"sqlite", sqlite.as_os_str().as_bytes()])?;
        }
        line(&[b"kernels", if setup.real_kernels { b"real" } else { b"answered" }])?;
        let solvers = match self.solvers {
            Solvers::All => "all",
            Solvers::Natural => "natural",
            Solvers::Only(name) => name,
        };
        line(&[b"solvers", solvers.as_bytes()])?;
        if let Some(find_db) = &self.find_db {
            line(&[b"find-db", find_db.as_os_str().as_bytes()])?;
        }
        line(&[b"limit", setup.time_limit.as_secs().max(1).to_string().as_bytes()])?;
        for stem in self.stems {
            line(&[b"stem", b"search", stem.as_bytes()])?;
        }
        line(&[b"start"])?;
        to.write_all(&words)
    }
}
