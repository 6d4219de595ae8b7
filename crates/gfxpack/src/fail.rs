//! Reports errors: what failed, why, and what to do about it.

use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use gfxpack_pipeline::error::{Error, ErrorKind, Result, in_full, io, usage};
use serde_json::json;

use crate::args::Common;
use crate::output::Output;

/// Everything was done.
pub(crate) const SUCCESS: u8 = 0;

/// All exit codes with their meaning, for the help and the documentation.
pub(crate) const MEANINGS: [(u8, &str); 8] = [
    (SUCCESS, "done"),
    (ErrorKind::Internal.exit_code(), "internal or environment error"),
    (ErrorKind::Usage.exit_code(), "wrong usage or input"),
    (
        ErrorKind::NotFound.exit_code(),
        "kernel not found (`lookup`, `kdb get`), no package (`install`), or no GPU (`install`, `detect`)",
    ),
    (
        ErrorKind::ShardIncomplete.exit_code(),
        "a shard is done and has refused kernels: running it again gives the same",
    ),
    (
        ErrorKind::Incomplete.exit_code(),
        "kernels could not be compiled or found, `package` was given a kdb that lacks kernels, MIOpen failed on problems, or rocFFT on plans",
    ),
    (
        ErrorKind::Unsound.exit_code(),
        "verification failed, `kdb diff --exit-code` found differences, `perfdb lint` found errors, `doctor` found a problem, or `cache verify` found damaged objects",
    ),
    (ErrorKind::Interrupted.exit_code(), "interrupted by a signal"),
];

/// Prints clap's error, or the requested help.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    let code = if error.use_stderr() { ErrorKind::Usage.exit_code() } else { SUCCESS };
    let json = value_of("--json").map(PathBuf::from);
    let output = Output::new(&Common { json: json.clone(), ..Common::default() }, false, false);
    let on_stdout = output.json;
    if error.use_stderr() && json.is_some() {
        let text = error.to_string();
        let (message, hint) = message_and_hint(&text);
        let body = json!({ "messages": [message], "hint": hint, "exit_code": code });
        // If the file can't be written, the command line is wrong in any case.
        if let Ok(output) = output.with_file(json.as_deref()) {
            output.message("error", &body);
        }
    }
    if !error.use_stderr() || !on_stdout {
        error.print().ok();
    }
    ExitCode::from(code)
}

/// The value of an option that is given as `--name=VALUE` or `--name VALUE`, even
/// if clap rejects the command line, for clap's own messages.
pub(crate) fn value_of(name: &str) -> Option<String> {
    let arguments = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let arguments: Vec<String> = arguments.collect();
    let inline = arguments.iter().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let next = arguments.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1].as_str());
    inline.chain(next).last().map(str::to_owned)
}

/// Splits clap's message into what is wrong and what to do about it. The first
/// paragraph may end with our own hint; clap's tips and usage follow.
fn message_and_hint(text: &str) -> (String, String) {
    let mut paragraphs = text.trim_start_matches("error: ").trim().split("\n\n");
    let first = paragraphs.next().unwrap_or_default();
    let one_line = |text: &str| Vec::from_iter(text.lines().map(str::trim)).join(" ");
    if let Some((message, hint)) = first.split_once("\nhint: ") {
        return (one_line(message), one_line(hint));
    }
    let tip = paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
    (one_line(first), tip.map_or_else(|| "see --help".to_owned(), one_line))
}

/// Reports an error, and returns the exit code.
pub(crate) fn report(error: &Error, output: &Output) -> ExitCode {
    let code = error.kind().exit_code();
    let messages = match error.parts() {
        [] => vec![in_full(error)],
        parts => parts.iter().map(ToString::to_string).collect(),
    };
    output.error(&messages, error.hint(), code);
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::message_and_hint;

    #[test]
    fn message_and_hint_are_separated_in_claps_output() {
        let check = |text: &str, message: &str, hint: &str| {
            let (found, its_hint) = message_and_hint(text);
            assert_eq!((found.as_str(), its_hint.as_str()), (message, hint));
        };
        let usage = "\n\nUsage: gfxpack dist\n\nFor more information, try '--help'.\n";
        check(
            &format!("error: invalid value 'x' for '--target': it is none\nhint: name one{usage}"),
            "invalid value 'x' for '--target': it is none",
            "name one",
        );
        check(
            &format!("error: invalid value 'x' for '--color'\n  [possible values: auto]{usage}"),
            "invalid value 'x' for '--color' [possible values: auto]",
            "see --help",
        );
        check(
            &format!("error: unexpected argument '--tarpet'\n\n  tip: there is '--target'{usage}"),
            "unexpected argument '--tarpet'",
            "there is '--target'",
        );
    }
}
