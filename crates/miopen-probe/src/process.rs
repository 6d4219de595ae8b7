//! Forking, waiting, and receiving sockets over sockets.

use std::io::{self, IoSliceMut, PipeReader};
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildEnd {
    Exited(i32),
    Killed(i32),
    Overdue,
    /// The client is gone.
    Unwanted,
}

/// A process that was forked.
#[derive(Debug)]
pub(crate) struct Child {
    pid: libc::pid_t,
    /// Closed when the child ends.
    alive: PipeReader,
}

/// Forks. The child runs `act` and never returns; it is killed when this process dies.
pub(crate) fn fork(act: impl FnOnce()) -> io::Result<Child> {
    let (alive, held) = io::pipe()?;
    let parent = std::process::id();
    // SAFETY: this process has one thread, since libraries end theirs before they return.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // Kept open until this process ends.
            mem::forget(held);
            drop(alive);
            // SAFETY: requests a signal; if the parent has already ended, it is sent at once.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid().cast_unsigned() == parent {
                    act();
                }
                // The libraries' exit handlers are not made for forks, so they are skipped.
                libc::_exit(0);
            }
        }
        pid => Ok(Child { pid, alive }),
    }
}

impl Child {
    /// Waits until the child ends, the time limit is over, or the other end of `client` is closed.
    /// In the last two cases, the child is killed.
    pub(crate) fn wait(self, limit: Duration, client: RawFd) -> io::Result<ChildEnd> {
        let forced = self.reason_to_kill(limit, client)?;
        if forced.is_some() {
            // SAFETY: the child has not been waited for, so the number is still its own.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
        let mut status = 0;
        // SAFETY: the child is this process's.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(forced.unwrap_or_else(|| {
            if libc::WIFSIGNALED(status) {
                ChildEnd::Killed(libc::WTERMSIG(status))
            } else {
                ChildEnd::Exited(libc::WEXITSTATUS(status))
            }
        }))
    }

    /// Waits for one of the three; why the child has to be killed, if it has not ended.
    fn reason_to_kill(&self, limit: Duration, client: RawFd) -> io::Result<Option<ChildEnd>> {
        let overdue = Instant::now() + limit;
        loop {
            let left = overdue.saturating_duration_since(Instant::now());
            let milliseconds = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
            let mut fds = [
                libc::pollfd { fd: self.alive.as_raw_fd(), events: libc::POLLIN, revents: 0 },
                libc::pollfd { fd: client, events: libc::POLLRDHUP, revents: 0 },
            ];
            // SAFETY: the array has that many entries.
            if unsafe { libc::poll(fds.as_mut_ptr(), 2, milliseconds) } < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            } else if fds[0].revents != 0 {
                return Ok(None);
            } else if fds[1].revents != 0 {
                return Ok(Some(ChildEnd::Unwanted));
            } else if left.is_zero() {
                return Ok(Some(ChildEnd::Overdue));
            }
        }
    }
}

/// Closes, in a child, a descriptor that belongs to its parent.
pub(crate) fn close(fd: RawFd) {
    // SAFETY: a child that never returns to the owner of the descriptor does not use it any more.
    unsafe { libc::close(fd) };
}

/// Makes children that are not waited for disappear when they end.
pub(crate) fn ignore_children(ignore: bool) {
    let action = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, action) };
}

/// A socket received over this one; `None` if the other end is closed.
pub(crate) fn receive_socket(control: &UnixStream) -> io::Result<Option<UnixStream>> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut room);
    let mut byte = [0];
    let received = retry_on_intr(|| {
        let parts = &mut [IoSliceMut::new(&mut byte)];
        recvmsg(control, parts, &mut rights, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut sockets = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    let socket = sockets.next().ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(socket.into()))
}
