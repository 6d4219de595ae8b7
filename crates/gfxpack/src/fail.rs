//! Reports errors: what failed, why, and what to do about it.

use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use gfxpack_pipeline::error::{Error, ErrorKind, Result, in_full, io, json, usage};
use gfxpack_pipeline::exit_code::SUCCESS;
use serde_json::json;

use crate::args::Common;
use crate::command_line;
use crate::output::Output;

/// Prints clap's error, or the requested help.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    let code = if error.use_stderr() { ErrorKind::Usage.exit_code() } else { SUCCESS };
    let json = command_line::value_of("--json").map(PathBuf::from);
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
