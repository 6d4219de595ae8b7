//! A terminal, for programs that behave differently without one.

use std::process::Command;

use super::project::{command, started_by};

/// Python's pty is the terminal; stdin is what is typed, and its output is copied to stdout.
const SCRIPT: &str = r#"
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    size = struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0)
    fcntl.ioctl(2, termios.TIOCSWINSZ, size)
    os.execv(sys.argv[2], sys.argv[2:])
os.write(fd, sys.stdin.buffer.read())
while True:
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    if not piece:
        break
    sys.stdout.buffer.write(piece)
    sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// A command that runs another one on a terminal with this many columns. The terminal's output is
/// on stdout.
pub(crate) fn on_a_terminal(shown: &Command, columns: usize) -> Command {
    let mut python = command("python3");
    python.args(["-c", SCRIPT, &columns.to_string()]);
    python.env("TERM", "xterm-256color");
    started_by(python, shown)
}
