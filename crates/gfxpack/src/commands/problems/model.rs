//! Models in ONNX. A model is somebody's file, and inferring its shapes runs
//! what it says: a process of its own does that, which has limits.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use gfxpack_compile::Cancel;
use gfxpack_miopen::{OnnxOptions, Problem, UnresolvedLayer, onnx_problems};
use gfxpack_pipeline::error::in_full;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{data_types, layouts};
use crate::args::ProblemsCommand;
use crate::fail::{self, Failure, Result};
use crate::output::{Output, harmless};

/// Address space of the process that reads a model: several times what the
/// largest models take without their weights.
const MAX_MEMORY: u64 = 2 << 30;
/// Seconds of a processor that it may take.
const MAX_SECONDS: u64 = 60;
/// How often it is looked at.
const TICK: Duration = Duration::from_millis(2);

/// What a process that read a model tells.
#[derive(Serialize, Deserialize)]
enum Answer {
    Read { problems: Vec<String>, unresolved: Vec<UnresolvedLayer>, convolutions: usize },
    Failed { message: String, hint: String },
}

/// Adds the problems of a model. Says how many of its layers are not known.
pub(super) fn add(
    name: &str,
    args: &ProblemsCommand,
    cancel: &Cancel,
    problems: &mut BTreeSet<Problem>,
    output: &Output,
) -> Result<usize> {
    let options = OnnxOptions {
        batches: args.batch.clone(),
        symbols: args.symbol.iter().cloned().collect(),
        data_types: data_types(args),
        layouts: layouts(args),
        directions: args.directions(),
        operations: args.operations(),
    };
    let (lines, unresolved, convolutions) = match ask(name, &options, cancel)? {
        Answer::Read { problems, unresolved, convolutions } => (problems, unresolved, convolutions),
        Answer::Failed { message, hint } => return Err(fail::usage(message, hint)),
    };
    for (at, layer) in unresolved.iter().enumerate() {
        let UnresolvedLayer { name: layer, operation, reason, hint, .. } = layer;
        let body = json!({
            "model": name, "layer": layer, "operation": operation, "reason": reason, "hint": hint,
        });
        output.message("unresolved-layer", &body);
        if !output.json {
            output.warn(&format!("{name}: `{layer}` ({operation}) is left out: {reason}"));
            // Once for all layers that it helps.
            if unresolved.get(at + 1).is_none_or(|next| next.hint != *hint) {
                output.stderr(&format!("hint: {}", harmless(hint)));
            }
        }
    }
    let body = json!({
        "model": name, "convolutions": convolutions, "unresolved": unresolved.len(),
        "problems": lines.len(),
    });
    output.message("model", &body);
    for line in lines {
        problems.insert(line.parse()?);
    }
    Ok(unresolved.len())
}

/// Has a process of its own read the model.
fn ask(name: &str, options: &OnnxOptions, cancel: &Cancel) -> Result<Answer> {
    let program = Path::new("/proc/self/exe");
    #[expect(
        clippy::disallowed_methods,
        reason = "it is this program, which sets its limits itself, and no compiler"
    )]
    let mut command = Command::new(program);
    // What its libraries say of what they do not like is no message.
    command.args(["read-model", "--"]).arg(name).stderr(Stdio::null());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(fail::io("run", program))?;
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
            return Err(gfxpack_compile::CompileError::Interrupted.into());
        }
        match child.try_wait().map_err(fail::io("run", program))? {
            Some(status) => break status,
            None => std::thread::sleep(TICK),
        }
    };
    let text = reader.join().map_err(|_| Failure::Defect)?.map_err(fail::io("read", program))?;
    if !status.success() {
        return Err(ended(name, status));
    }
    Ok(serde_json::from_slice(&text)?)
}

/// What is told of a process that came to no end.
fn ended(name: &str, status: ExitStatus) -> Failure {
    use std::os::unix::process::ExitStatusExt as _;
    // Which of its limits it was cannot be told: all end it by signals.
    let Some(signal) = status.signal() else { return Failure::Defect };
    let most = MAX_MEMORY >> 30;
    let why = format!(
        "it took more than {most} GiB or {MAX_SECONDS} s, or than ulimit allows (signal {signal})"
    );
    fail::usage(
        format!("failed to infer the shapes of `{name}`: {why}"),
        "export the model with fixed sizes, or list its convolutions in a file for --problems",
    )
}

/// `read-model`: reads a model within limits, for [`add`].
pub(crate) fn read_model(model: &Path, output: &Output) -> Result {
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
            .map_err(|errno| fail::io("limit", Path::new("this process"))(errno.into()))?;
    }
    let options: OnnxOptions = serde_json::from_reader(std::io::stdin().lock())?;
    let answer = match onnx_problems(model, &options) {
        Ok(read) => Answer::Read {
            problems: read.problems.iter().map(ToString::to_string).collect(),
            unresolved: read.unresolved,
            convolutions: read.convolutions,
        },
        Err(error) => {
            let hint = error.hint();
            Answer::Failed { message: in_full(&error), hint }
        }
    };
    output.data(&serde_json::to_string(&answer)?);
    Ok(())
}
