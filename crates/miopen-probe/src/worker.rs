//! Workers: each serves the requests of one socket, problem by problem, each in a process of its
//! own, so that its crash does not affect others.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;

use gfxpack_model::probe_line;
use gfxpack_standin::KernelDatabases;

use crate::convolution::Convolution;
use crate::load::Loaded;
use crate::notes::{self, FULL};
use crate::process::{ChildEnd, close, fork, ignore_children, receive_socket};
use crate::steps::{self, Step};

/// The directory that the library takes for the user's.
const DIRECTORY: &str = "problem";

/// A request: a problem and how to compute it.
#[derive(Debug)]
struct Task {
    steps: Vec<Step>,
    problem: Convolution,
    answers: Answers,
}

impl Task {
    fn parse(fields: &[Vec<u8>]) -> Option<Self> {
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        let [b"ask", answers, steps, problem] = fields[..] else { return None };
        Some(Self {
            steps: Step::parse_list(steps)?,
            problem: Convolution::parse(problem)?,
            answers: match answers {
                b"all" => Answers::All,
                b"compilable" => Answers::Compilable,
                b"none" => Answers::None,
                _ => return None,
            },
        })
    }
}

/// The kernels that the stand-in has, besides those in real databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    All,
    /// All but those that are withheld.
    Compilable,
    None,
}

/// Forks a worker for each socket that is sent over this one, until it is closed.
///
/// Workers outlive this process; each ends when its socket is closed.
pub(crate) fn serve_workers(control: &UnixStream, loaded: &Loaded) {
    ignore_children(true);
    let directory = env::current_dir();
    let mut number = 0_u32;
    while let Ok(Some(socket)) = receive_socket(control) {
        number += 1;
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                close(control.as_raw_fd());
                ignore_children(false);
                let _ = work(&format!("worker-{number}"), &socket, loaded);
                exit_now();
            }
            // The client sees that the socket is closed.
            _ => drop(socket),
        }
    }
    // If gfxpack was killed, nothing else removes it.
    if let Ok(directory) = directory {
        let _ = fs::remove_dir_all(directory);
    }
}

/// Ends without the libraries' exit handlers, which are not made for forks.
fn exit_now() -> ! {
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
}

/// Serves a socket in a directory of its own.
fn work(directory: &str, socket: &UnixStream, loaded: &Loaded) -> io::Result<()> {
    fs::create_dir(directory)?;
    env::set_current_dir(directory)?;
    let mut reader = BufReader::new(socket);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        match Task::parse(&probe_line::fields(&line)) {
            None => fail(socket, "the request can't be read")?,
            Some(task) => answer(loaded, &task, socket)?,
        }
        line.clear();
    }
    Ok(())
}

/// Ends an answer with a reason.
fn fail(mut socket: &UnixStream, reason: &str) -> io::Result<()> {
    socket.write_all(&probe_line::line(&["end", "failed", reason]))
}

/// Computes a problem, and sends its notes and its end.
fn answer(loaded: &Loaded, task: &Task, mut socket: &UnixStream) -> io::Result<()> {
    // A file, so that the notes survive the death of the process that writes them.
    let mut notes = File::options().read(true).append(true).create(true).open("notes")?;
    notes.set_len(0)?;
    let end = run(loaded, task, notes.try_clone()?, socket.as_raw_fd());
    notes.rewind()?;
    let mut whole = Vec::new();
    notes.read_to_end(&mut whole)?;
    // Its last line may be cut short.
    whole.truncate(whole.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
    socket.write_all(&whole)?;
    let how = match end {
        Ok(ChildEnd::Exited(0)) => "done".to_owned(),
        Ok(ChildEnd::Exited(FULL)) => "full".to_owned(),
        Ok(ChildEnd::Exited(status)) => format!("exited\t{status}"),
        Ok(ChildEnd::Killed(signal)) => format!("killed\t{signal}"),
        Ok(ChildEnd::Overdue) => "overdue".to_owned(),
        Ok(ChildEnd::Unwanted) => exit_now(),
        Err(error) => return fail(socket, &error.to_string()),
    };
    writeln!(socket, "end\t{how}")
}

/// Computes a problem in a process of its own, which appends its notes to the file.
fn run(loaded: &Loaded, task: &Task, notes: File, client: RawFd) -> io::Result<ChildEnd> {
    loaded.make_directory(DIRECTORY)?;
    let child = fork(|| {
        close(client);
        notes::begin(notes);
        if let Err(error) = env::set_current_dir(DIRECTORY) {
            notes::note(&[b"unanswered", error.to_string().as_bytes()]);
            return;
        }
        if loaded.real_kernels && task.answers != Answers::None {
            gfxpack_standin::kernel_databases(KernelDatabases::RealThenAnswered);
        }
        if task.answers == Answers::Compilable {
            let withheld = loaded.withheld;
            gfxpack_standin::withhold(move |key| withheld.has(key));
        }
        steps::run(loaded, &task.problem, &task.steps);
    });
    let end = child.and_then(|child| child.wait(loaded.limit, client));
    fs::remove_dir_all(DIRECTORY)?;
    end
}
