//! How what ended a command is reported: what failed, why, and what to do
//! about it.

use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use gfxpack_pipeline::error::{Error, ErrorKind, Result, in_full, io, usage};
use gfxpack_pipeline::exit_code::SUCCESS;
use serde_json::json;

use crate::args::{Common, MessageFormat};
use crate::command_line;
use crate::output::Output;

/// What clap says of a command line, or the help that was asked for.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    let code = if error.use_stderr() { ErrorKind::Usage.exit_code() } else { SUCCESS };
    let json = command_line::value_of("--message-format").is_some_and(|format| format == "json");
    let file = command_line::value_of("--json").map(PathBuf::from);
    if error.use_stderr() && (json || file.is_some()) {
        let message = error.to_string().trim_start_matches("error: ").trim().to_owned();
        let format = if json { MessageFormat::Json } else { MessageFormat::Human };
        let output = Output::new(&Common { message_format: format, ..Common::default() }, false);
        let body = json!({ "messages": [message], "hint": "see --help", "exit_code": code });
        // If the file can't be written: the command line is wrong in any case.
        if let Ok(output) = output.with_file(file.as_deref()) {
            output.message("error", &body);
        }
    }
    if !error.use_stderr() || !json {
        error.print().ok();
    }
    ExitCode::from(code)
}

/// Reports an error and gives the exit code.
pub(crate) fn report(error: &Error, output: &Output) -> ExitCode {
    let code = error.kind().exit_code();
    let messages = match error {
        Error::Inputs(errors) => errors.iter().map(ToString::to_string).collect(),
        other => vec![in_full(other)],
    };
    output.error(&messages, error.hint().as_deref(), code);
    ExitCode::from(code)
}
