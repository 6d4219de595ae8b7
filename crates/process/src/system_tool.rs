//! Starts the system's own tools: package managers, curl, repository tools, gpg, schedulers.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use gfxpack_model::Error;

/// The number of output lines that the error of a failed tool contains.
const LINES_TOLD: usize = 5;

/// A program that may not be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemTool {
    /// Its name on `PATH`.
    pub program: &'static str,
    /// The packages that contain it, as text.
    pub provided_by: &'static str,
}

/// The result of a tool.
#[derive(Debug)]
pub struct ToolOutput {
    tool: SystemTool,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error; bytes that are no UTF-8 are replaced.
    pub stderr: String,
}

/// A tool whose standard output is read as it comes. It is killed if this is dropped before its end.
#[derive(Debug)]
pub struct RunningTool {
    tool: SystemTool,
    child: Child,
}

impl SystemTool {
    /// Runs the tool in `dir` with `input` as its standard input, and returns its standard output.
    ///
    /// # Errors
    /// If it is not installed, can't be started, or ends with an exit code other than 0.
    pub fn output<S: AsRef<OsStr>>(
        self,
        arguments: &[S],
        dir: &Path,
        input: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let output = self.capture(arguments, dir, input)?;
        if output.status.success() { Ok(output.stdout) } else { Err(output.failure()) }
    }

    /// Runs the tool in `dir` with `input` as its standard input, and returns how it ended.
    ///
    /// # Errors
    /// If it is not installed, or can't be started.
    pub fn capture<S: AsRef<OsStr>>(
        self,
        arguments: &[S],
        dir: &Path,
        input: &[u8],
    ) -> Result<ToolOutput, Error> {
        let mut command = self.command(arguments, dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(self.start_error())?;
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let done = std::thread::scope(|scope| {
            // The tool may write before it has read everything, or end without reading.
            let feeding = scope.spawn(move || stdin.write_all(input).ok());
            let done = child.wait_with_output();
            feeding.join().ok();
            done
        });
        let done = done.map_err(self.start_error())?;
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        Ok(ToolOutput { tool: self, status: done.status, stdout: done.stdout, stderr })
    }

    /// Starts the tool, and gives it `input`, a few lines. What it writes to its standard error, a
    /// few lines too, is read at its end.
    ///
    /// # Errors
    /// If it is not installed, or can't be started.
    pub fn start<S: AsRef<OsStr>>(
        self,
        arguments: &[S],
        input: &[u8],
    ) -> Result<RunningTool, Error> {
        let mut command = self.command(arguments, Path::new("."));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(self.start_error())?;
        let mut stdin = child.stdin.take().expect("stdin is piped");
        // A tool that ends without reading says why itself.
        let _ = stdin.write_all(input);
        Ok(RunningTool { tool: self, child })
    }

    /// Runs the tool on the user's terminal.
    ///
    /// # Errors
    /// If it is not installed, can't be started, or fails.
    pub fn interact<S: AsRef<OsStr>>(self, arguments: &[S]) -> Result<(), Error> {
        let status = self.command(arguments, Path::new(".")).status();
        let status = status.map_err(self.start_error())?;
        if status.success() { Ok(()) } else { Err(self.failed(status, "")) }
    }

    /// Whether the tool is on `PATH` and can be started.
    pub fn is_installed(self) -> bool {
        let mut command = self.command(&["--version"], Path::new("."));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok()
    }

    /// The tool inherits the user's environment, which has the location of keys and the
    /// configuration.
    fn command<S: AsRef<OsStr>>(self, arguments: &[S], dir: &Path) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the one place that starts system tools")]
        let mut command = Command::new(self.program);
        command.args(arguments).current_dir(dir).env("LC_ALL", "C.UTF-8");
        command
    }

    fn start_error(self) -> impl FnOnce(io::Error) -> Error {
        let Self { program, provided_by } = self;
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Error::usage(
                format!("failed to find the program `{program}`"),
                format!("install {provided_by}"),
            ),
            _ => Error::io("start", program)(source),
        }
    }

    fn failed(self, status: ExitStatus, stderr: &str) -> Error {
        let program = self.program;
        let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let mut message = format!("failed to run `{program}`: {status}");
        if !lines.is_empty() {
            message += ": ";
            message += &lines[lines.len().saturating_sub(LINES_TOLD)..].join("; ");
        }
        Error::internal(message, "see its output above")
    }
}

impl RunningTool {
    /// Waits for the end of the tool, and returns how it ended, and what it wrote since the last
    /// [`Read::read`].
    ///
    /// # Errors
    /// The error of the system.
    pub fn end(mut self) -> io::Result<ToolOutput> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.read_to_end(&mut stdout)?;
        self.child.stderr.take().expect("stderr is piped").read_to_end(&mut stderr)?;
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(ToolOutput { tool: self.tool, status: self.child.wait()?, stdout, stderr })
    }
}

impl Read for RunningTool {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.child.stdout.as_mut().expect("stdout is piped").read(buffer)
    }
}

impl Drop for RunningTool {
    fn drop(&mut self) {
        // If it has ended already, there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ToolOutput {
    /// The error for a tool whose result is not acceptable.
    pub fn failure(&self) -> Error {
        self.tool.failed(self.status, &self.stderr)
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_model::ErrorKind;

    use super::*;

    const SH: SystemTool = SystemTool { program: "sh", provided_by: "dash" };

    fn sh(script: &str, input: &[u8]) -> Result<Vec<u8>, Error> {
        SH.output(&["-c", script], Path::new("/"), input)
    }

    #[test]
    fn a_tool_reads_its_input_and_its_output_is_returned() {
        assert_eq!(sh("cat; pwd; echo $LC_ALL", b"in\n").expect("runs"), b"in\n/\nC.UTF-8\n");
        // More input than a pipe holds, which the tool does not read.
        assert_eq!(sh("exec true", &vec![0; 1 << 20]).expect("runs"), b"");
    }

    #[test]
    fn the_error_of_a_failed_tool_has_its_last_output() {
        let error = sh("for i in 1 2 3 4 5 6; do echo $i >&2; echo >&2; done; exit 3", b"");
        let error = error.expect_err("it fails");
        let expected = "failed to run `sh`: exit status: 3: 2; 3; 4; 5; 6";
        assert_eq!((error.to_string().as_str(), error.kind()), (expected, ErrorKind::Internal));
    }

    #[test]
    fn output_is_read_as_it_comes_and_a_tool_ends_with_its_reader() {
        let script = "read x; echo $x; echo b >&2; exit 3";
        let mut running = SH.start(&["-c", script], b"a\n").expect("starts");
        let mut first = [0; 2];
        running.read_exact(&mut first).expect("read");
        let ended = running.end().expect("it ends");
        assert_eq!((&first, ended.status.code(), &*ended.stderr), (b"a\n", Some(3), "b\n"));
        let began = std::time::Instant::now();
        drop(SH.start(&["-c", "exec sleep 60"], b"").expect("starts"));
        assert!(began.elapsed().as_secs() < 30);
    }

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let none = SystemTool { program: "/no/such/program", provided_by: "a-package" };
        assert!(!none.is_installed() && SH.is_installed());
        let error = none.interact(&["--version"]).expect_err("there is none");
        assert_eq!((error.hint(), error.kind()), (Some("install a-package"), ErrorKind::Usage));
    }
}
