//! Reads models in ONNX in a process of its own, with limits: a model may come
//! from anybody, and inferring its shapes evaluates what it contains.

use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use gfxpack_compile::{Cancel, CompileError};
use gfxpack_miopen::{OnnxOptions, UnresolvedLayer, onnx_problems};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::error::{self, Error, Result, in_full};

/// Address space of the process that reads a model. It is several times what the
/// largest models need without their weights.
const MAX_MEMORY: u64 = 2 << 30;
/// CPU time that this process may use, in seconds.
const MAX_SECONDS: u64 = 60;
/// How often this process is polled.
const TICK: Duration = Duration::from_millis(2);

/// What the process that reads a model sends back.
#[derive(Serialize, Deserialize)]
enum ModelReply {
    Read(ModelProblems),
    Failed { message: String, hint: String },
}

/// The problems of a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelProblems {
    /// Its problems, as MIOpenDriver's arguments.
    pub problems: Vec<String>,
    /// Layers whose problems are not known, in the model's order.
    pub unresolved: Vec<UnresolvedLayer>,
    /// Number of layers with convolutions whose problems are known.
    pub convolutions: usize,
}

/// Reads the model in a process of its own: this program with the arguments
/// `command` and the model's name, which calls [`answer`].
///
/// # Errors
/// If the model can't be read, or that takes too much time or memory.
pub fn read_in_process(
    command: &str,
    model: &str,
    options: &OnnxOptions,
    cancel: &Cancel,
) -> Result<ModelProblems> {
    let program = Path::new("/proc/self/exe");
    #[expect(
        clippy::disallowed_methods,
        reason = "it is this program, which sets its limits itself, and no compiler"
    )]
    let mut process = Command::new(program);
    // What libraries print to stderr about a model is not for the user.
    process.args([command, "--", model]).stderr(Stdio::null());
    let mut child = process
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(error::io("run", program))?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    let mut stdout = child.stdout.take().expect("it was asked for");
    // The child reads the request before it works. If it has died, the status
    // tells below.
    stdin.write_all(&serde_json::to_vec(options)?).ok();
    drop(stdin);
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).map(|_| text)
    });
    let status = loop {
        if cancel.is_cancelled() {
            child.kill().ok();
            child.wait().ok();
            return Err(CompileError::Interrupted.into());
        }
        match child.try_wait().map_err(error::io("run", program))? {
            Some(status) => break status,
            None => std::thread::sleep(TICK),
        }
    };
    let text = reader.join().map_err(|_| error::defect())?.map_err(error::io("read", program))?;
    if !status.success() {
        return Err(ended(model, status));
    }
    match serde_json::from_slice(&text)? {
        ModelReply::Read(problems) => Ok(problems),
        ModelReply::Failed { message, hint } => Err(error::usage(message, hint)),
    }
}

/// The error for a process that was killed, or has panicked.
fn ended(model: &str, status: ExitStatus) -> Error {
    use std::os::unix::process::ExitStatusExt as _;
    // All limits end the process by a signal, so the limit is not known.
    let Some(signal) = status.signal() else { return error::defect() };
    let most = MAX_MEMORY >> 30;
    let why = format!(
        "it took more than {most} GiB or {MAX_SECONDS} s, or than ulimit allows (signal {signal})"
    );
    error::usage(
        format!("failed to infer the shapes of `{model}`: {why}"),
        "export the model with fixed sizes, or list its convolutions in a file for --problems",
    )
}

/// Limits this process, reads a model with the options in `request`, and returns
/// the answer for [`read_in_process`].
///
/// # Errors
/// If the limits can't be set, or the request can't be read. For a model that
/// can't be read, the answer holds the error.
pub fn answer(model: &Path, request: impl Read) -> Result<String> {
    limit_this_process()?;
    let options: OnnxOptions = serde_json::from_reader(request)?;
    let answer = match onnx_problems(model, &options) {
        Ok(read) => ModelReply::Read(ModelProblems {
            problems: read.problems.iter().map(ToString::to_string).collect(),
            unresolved: read.unresolved,
            convolutions: read.convolutions,
        }),
        Err(error) => ModelReply::Failed { message: in_full(&error), hint: error.hint() },
    };
    Ok(serde_json::to_string(&answer)?)
}

fn limit_this_process() -> Result<()> {
    // The soft limit of CPU time ends the process by a signal that it could
    // handle, the hard limit kills it.
    for (resource, current, maximum) in [
        (Resource::As, MAX_MEMORY, MAX_MEMORY),
        (Resource::Cpu, MAX_SECONDS, MAX_SECONDS + 5),
        (Resource::Core, 0, 0),
    ] {
        // A process can't raise its limits.
        let given = getrlimit(resource);
        let least =
            |given: Option<u64>, most: u64| Some(given.map_or(most, |given| most.min(given)));
        let limit = Rlimit {
            current: least(given.current, current),
            maximum: least(given.maximum, maximum),
        };
        setrlimit(resource, limit)
            .map_err(|errno| error::io("limit", Path::new("this process"))(errno.into()))?;
    }
    Ok(())
}
