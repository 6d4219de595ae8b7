//! Models in ONNX. A model is somebody's file, and inferring its shapes runs
//! what it says: a process of its own does that, which has limits.

use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use gfxpack_compile::{Cancel, CompileError};
use gfxpack_miopen::{OnnxOptions, UnresolvedLayer, onnx_problems};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::error::{self, Error, Result, in_full};

/// Address space of the process that reads a model: several times what the
/// largest models take without their weights.
const MAX_MEMORY: u64 = 2 << 30;
/// Seconds of a processor that it may take.
const MAX_SECONDS: u64 = 60;
/// How often it is looked at.
const TICK: Duration = Duration::from_millis(2);

/// What the process that reads a model sends back.
#[derive(Serialize, Deserialize)]
enum Answer {
    Read(ModelProblems),
    Failed { message: String, hint: String },
}

/// What a model is made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelProblems {
    /// Its problems, as MIOpenDriver's arguments.
    pub problems: Vec<String>,
    /// Layers whose problems are not known, in the model's order.
    pub unresolved: Vec<UnresolvedLayer>,
    /// Layers with convolutions whose problems are known.
    pub convolutions: usize,
}

/// Reads the model in a process of its own: this program with `command` and the
/// model's name as arguments, which calls [`answer`].
///
/// # Errors
/// Where the model can't be read, or reading it takes too much.
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
    // What its libraries say of what they do not like is no message.
    process.args([command, "--", model]).stderr(Stdio::null());
    let mut child = process
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(error::io("run", program))?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    let mut stdout = child.stdout.take().expect("it was asked for");
    // It reads all before it works; where it is gone, its end is told below.
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
        Answer::Read(problems) => Ok(problems),
        Answer::Failed { message, hint } => Err(error::usage(message, hint)),
    }
}

/// The error for a process that was killed.
fn ended(model: &str, status: ExitStatus) -> Error {
    use std::os::unix::process::ExitStatusExt as _;
    // Which of its limits it was is not known: all end it by signals.
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

/// Limits this process, reads a model with the options that `request` holds,
/// and gives the answer for [`read_in_process`].
///
/// # Errors
/// Where the limits can't be set, or the request can't be read. A model that
/// can't be read is an answer.
pub fn answer(model: &Path, request: impl Read) -> Result<String> {
    limit_this_process()?;
    let options: OnnxOptions = serde_json::from_reader(request)?;
    let answer = match onnx_problems(model, &options) {
        Ok(read) => Answer::Read(ModelProblems {
            problems: read.problems.iter().map(ToString::to_string).collect(),
            unresolved: read.unresolved,
            convolutions: read.convolutions,
        }),
        Err(error) => Answer::Failed { message: in_full(&error), hint: error.hint() },
    };
    Ok(serde_json::to_string(&answer)?)
}

fn limit_this_process() -> Result<()> {
    // At the first limit of its time a process is asked to end, at the second
    // it is ended.
    for (resource, current, maximum) in [
        (Resource::As, MAX_MEMORY, MAX_MEMORY),
        (Resource::Cpu, MAX_SECONDS, MAX_SECONDS + 5),
        (Resource::Core, 0, 0),
    ] {
        // A process has no right to more than it was given.
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
