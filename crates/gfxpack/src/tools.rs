//! Starts the system's own tools: package managers, makers of repositories,
//! gpg.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::fail::{self, Outcome};

/// A program that may have to be installed first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// As it is called on `PATH`.
    pub(crate) program: &'static str,
    /// The packages that bring it, in words.
    pub(crate) from: &'static str,
}

/// The program with these words, to be started in `dir`. The environment is
/// the user's: it says where keys are and how the system is configured.
fn command<S: AsRef<OsStr>>(tool: Tool, words: &[S], dir: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the one place here that starts programs")]
    let mut command = Command::new(tool.program);
    command.args(words).current_dir(dir).env("LC_ALL", "C.UTF-8");
    command
}

fn start_error(tool: Tool) -> impl FnOnce(std::io::Error) -> anyhow::Error {
    move |source| match source.kind() {
        std::io::ErrorKind::NotFound => fail::usage(
            format!("failed to find the program `{}`", tool.program),
            format!("install {}", tool.from),
        ),
        _ => Outcome::Io { action: "start", path: tool.program.to_owned(), source }.into(),
    }
}

/// What a program wrote to its standard output, if it ended well. `input`
/// goes to its standard input.
pub(crate) fn output<S: AsRef<OsStr>>(
    tool: Tool,
    words: &[S],
    dir: &Path,
    input: &[u8],
) -> anyhow::Result<Vec<u8>> {
    let (status, stdout, stderr) = capture(tool, words, dir, input)?;
    if status.success() {
        return Ok(stdout);
    }
    Err(failed(tool, status, &stderr))
}

/// How a program ended, with its standard output and what it said besides.
pub(crate) fn capture<S: AsRef<OsStr>>(
    tool: Tool,
    words: &[S],
    dir: &Path,
    input: &[u8],
) -> anyhow::Result<(ExitStatus, Vec<u8>, String)> {
    let mut command = command(tool, words, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(start_error(tool))?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let done = std::thread::scope(|scope| {
        // It may write before it has read everything, or end without reading.
        let feeding = scope.spawn(move || stdin.write_all(input).ok());
        let done = child.wait_with_output();
        feeding.join().ok();
        done
    });
    let done = done.map_err(start_error(tool))?;
    Ok((done.status, done.stdout, String::from_utf8_lossy(&done.stderr).into_owned()))
}

/// Runs a program that talks to the user itself.
pub(crate) fn interact<S: AsRef<OsStr>>(tool: Tool, words: &[S]) -> anyhow::Result<()> {
    let status = command(tool, words, Path::new(".")).status().map_err(start_error(tool))?;
    if status.success() { Ok(()) } else { Err(failed(tool, status, "")) }
}

/// What a program that ended badly comes to.
pub(crate) fn failed(tool: Tool, status: ExitStatus, stderr: &str) -> anyhow::Error {
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let words = lines[lines.len().saturating_sub(5)..].join("; ");
    Outcome::Tool { program: tool.program, status: status.to_string(), words }.into()
}

/// Whether the program is on `PATH` and starts.
pub(crate) fn is_there(tool: Tool) -> bool {
    let mut command = command(tool, &["--version"], Path::new("."));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}
