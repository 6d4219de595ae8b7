//! Workers: each serves the requests of one socket, problem by problem.

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use gfxpack_model::probe_line;

use crate::arena::Arena;
use crate::child::{self, Task};
use crate::load::Loaded;
use crate::notes::FULL;
use crate::process::{
    Child, ChildEnd, Ready, close, fork, ignore_children, receive_socket, wait_for,
};
use crate::steps;

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
                let _ = work(&format!("worker-{number}"), &socket, loaded, loaded.stems.len());
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

/// A process to fork from that has already computed a problem.
#[derive(Debug)]
struct Stem {
    socket: BufReader<UnixStream>,
    process: Child,
}

/// Serves a socket in a directory of its own.
fn work(directory: &str, socket: &UnixStream, loaded: &Loaded, stems: usize) -> io::Result<()> {
    fs::create_dir(directory)?;
    env::set_current_dir(directory)?;
    let arena: &'static Arena = Box::leak(Box::new(Arena::new()?));
    let mut stems: Vec<Option<Stem>> = (0..stems).map(|_| None).collect();
    let mut reader = BufReader::new(socket);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let mut fields = probe_line::fields(&line);
        line.clear();
        match Task::parse(&fields) {
            None => fail(socket, "the request can't be read")?,
            Some(task) if task.stem == 0 => answer(loaded, arena, &task, socket)?,
            Some(Task { stem, .. }) => match stems.get_mut(stem - 1) {
                None => fail(socket, "there is no such stem")?,
                Some(place) => {
                    fields[1] = b"0".to_vec();
                    pass_on(place, stem, &fields, socket, loaded)?;
                }
            },
        }
    }
    Ok(())
}

/// Ends an answer with a reason.
fn fail(mut socket: &UnixStream, reason: &str) -> io::Result<()> {
    socket.write_all(&probe_line::line(&["end", "failed", reason]))
}

/// Computes a problem, and sends its notes and its end.
fn answer(
    loaded: &Loaded,
    arena: &'static Arena,
    task: &Task,
    mut socket: &UnixStream,
) -> io::Result<()> {
    let end = child::run(loaded, arena, task, socket.as_raw_fd());
    socket.write_all(arena.bytes())?;
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

/// Passes a request to a stem, which is started if it does not run.
fn pass_on(
    place: &mut Option<Stem>,
    number: usize,
    fields: &[Vec<u8>],
    mut client: &UnixStream,
    loaded: &Loaded,
) -> io::Result<()> {
    if place.is_none() {
        *place = Some(Stem::begin(number, client.as_raw_fd(), loaded)?);
    }
    let Some(stem) = place else { return Ok(()) };
    // If the stem has ended, reading reports it.
    let _ = stem.socket.get_mut().write_all(&probe_line::line(fields));
    let mut line = Vec::new();
    loop {
        line.clear();
        if stem.socket.buffer().is_empty()
            && wait_for(stem.socket.get_ref().as_raw_fd(), client.as_raw_fd(), None)?
                == Ready::Client
        {
            exit_now();
        }
        if stem.socket.read_until(b'\n', &mut line)? == 0 {
            if let Some(stem) = place.take() {
                stem.process.wait(Duration::ZERO, client.as_raw_fd())?;
            }
            return fail(client, "the primed process ended");
        }
        client.write_all(&line)?;
        if line.starts_with(b"end\t") {
            return Ok(());
        }
    }
}

impl Stem {
    fn begin(number: usize, client: RawFd, loaded: &Loaded) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let our_fd = ours.as_raw_fd();
        let process = fork(|| {
            close(client);
            close(our_fd);
            let (steps, problem) = &loaded.stems[number - 1];
            // Errors before the first request are not reported.
            let _ = loaded
                .in_directory(&format!("priming-{number}"), || steps::run(loaded, problem, steps))
                .and_then(|()| work(&format!("stem-{number}"), &theirs, loaded, 0));
        })?;
        Ok(Self { socket: BufReader::new(ours), process })
    }
}
