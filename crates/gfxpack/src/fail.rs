//! What ended a command, and how that is reported: what failed, why, and what
//! to do about it.

use std::path::PathBuf;
use std::process::ExitCode;

use gfxpack_pipeline::error::Error;
pub(crate) use gfxpack_pipeline::error::in_full;
use gfxpack_pipeline::exit_code::{self, INTERNAL, NOT_FOUND, REFUSED, UNSOUND, USAGE};
use gfxpack_plan::shard::ranges;
use serde_json::json;

use crate::args::{Common, MessageFormat};
use crate::command_line;
use crate::output::{Output, counted};

/// The result of a command.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// What ended a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A step of the pipeline failed.
    #[error(transparent)]
    Pipeline(Error),
    /// Layers of models whose problems are not known.
    #[error("failed to resolve {}", counted(*.0, "layer"))]
    Unresolved(usize),
    /// All shards are done, and some kernels could not be compiled.
    #[error("failed to compile {}; all shards are done", counted(*.0, "kernel"))]
    ShardsRefused(usize),
    /// Nothing runs any more, and shards are missing.
    #[error("failed to finish {} of {count} shards: {}", .missing.len(), ranges(.missing))]
    ShardsMissing { missing: Vec<u32>, count: u32 },
    /// Something is wrong in performance or find databases.
    #[error("failed to verify {0}")]
    Faulty(String),
    /// Two kdbs differ, and the user wanted to know.
    #[error("the kdbs differ: {}", counted(*.0, "difference"))]
    Differ(u64),
    /// A repair could not save all rows.
    #[error("failed to save {what} of `{file}`")]
    Lost { file: String, what: String, hint: &'static str },
    /// No file has the kernel that was looked up.
    #[error("failed to find {key} for {target}")]
    NotFound {
        /// Name and arguments, in words.
        key: String,
        target: String,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// The machine is not as it should be.
    #[error("found {} on this machine", counted(*.0, "problem"))]
    Unwell(usize),
    /// No package of kernels was found for this machine.
    #[error("failed to find a package for {targets}")]
    NoPackage {
        targets: String,
        /// Whether a directory of packages was given.
        given: bool,
    },
    /// No GPU was found that packages could be for.
    #[error("failed to find an AMD GPU in this machine")]
    NoGpu,
    /// Objects of the cache were damaged.
    #[error("failed to verify the cache: {} were damaged, and are removed", counted(*.0, "object"))]
    Damaged(usize),
    /// The cache is in use.
    #[error("failed to evict from the cache: a build is using it")]
    InUse,
    /// The program that was run failed, and said why itself.
    #[error("the program ended with exit code {0}")]
    Program(u8),
    /// Signals could not be handled.
    #[error("failed to handle signals")]
    Signals(#[source] ctrlc::Error),
}

/// What the pipeline knows fails here as it fails there.
impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Pipeline(error.into())
    }
}

/// An error in the command line or an input.
pub(crate) fn usage(message: impl ToString, hint: impl ToString) -> Failure {
    gfxpack_pipeline::error::usage(message, hint).into()
}

/// A file that could not be read or written.
pub(crate) fn io(
    action: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(std::io::Error) -> Failure {
    let error = gfxpack_pipeline::error::io(action, path);
    move |source| error(source).into()
}

/// What clap says of a command line, or the help that was asked for.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    let json = command_line::value_of("--message-format").is_some_and(|format| format == "json");
    let file = command_line::value_of("--json").map(PathBuf::from);
    if error.use_stderr() && (json || file.is_some()) {
        let text = error.to_string();
        let (message, hint) = message_and_hint(&text);
        let format = if json { MessageFormat::Json } else { MessageFormat::Human };
        let output = Output::new(&Common { message_format: format, ..Common::default() }, false);
        let body = json!({ "messages": [message], "hint": hint, "exit_code": USAGE });
        // If the file can't be written: the command line is wrong in any case.
        if let Ok(output) = output.with_file(file.as_deref()) {
            output.message("error", &body);
        }
    }
    if !error.use_stderr() || !json {
        error.print().ok();
    }
    ExitCode::from(if error.use_stderr() { USAGE } else { exit_code::SUCCESS })
}

/// What is wrong and what to do about it, from what clap prints: a paragraph
/// that may end with our own hint, then clap's tips and usage.
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

impl Failure {
    /// The exit code.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Pipeline(error) => error.kind().exit_code(),
            Self::Unresolved(_) => REFUSED,
            Self::ShardsRefused(_) => exit_code::SHARD_REFUSED,
            Self::NotFound { .. } | Self::NoPackage { .. } | Self::NoGpu => NOT_FOUND,
            Self::Faulty(_)
            | Self::Differ(_)
            | Self::Lost { .. }
            | Self::Unwell(_)
            | Self::Damaged(_) => UNSOUND,
            Self::ShardsMissing { .. } | Self::InUse | Self::Signals(_) => INTERNAL,
            Self::Program(code) => *code,
        }
    }

    /// What the user can do about it.
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Pipeline(error) => return error.hint(),
            other => other.fixed_hint()?.to_owned(),
        })
    }

    /// The hint of an outcome that always has the same.
    fn fixed_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unresolved(_) => "each is named above, with what would resolve it",
            Self::ShardsRefused(_) => gfxpack_pipeline::error::SHARD_REFUSED_HINT,
            Self::ShardsMissing { .. } => {
                "submit again: only what is missing runs; the logs say what happened"
            }
            Self::Faulty(_) => "each finding above says what is wrong, and where",
            Self::Differ(_) => "each is listed above",
            Self::Lost { hint, .. } | Self::NotFound { hint, .. } => hint,
            Self::NoPackage { given: true, .. } => {
                "the directory given with --from has none: build it with `gfxpack dist`"
            }
            Self::NoPackage { .. } => {
                "add a repository that has one, give a directory of packages with --from, \
                 or build it with `gfxpack dist`"
            }
            Self::NoGpu => {
                "`gfxpack doctor` tells why none was found; for another machine's GPU, \
                 have the package manager install its package by name"
            }
            Self::Unwell(_) => "each problem above says what to do",
            Self::Damaged(_) => {
                "the next build compiles them anew; if it happens again, check the disk"
            }
            Self::InUse => {
                "run it again when the build is done, or let builds do it with --cache-size"
            }
            _ => return None,
        })
    }
}

/// Reports the failure and gives the exit code.
pub(crate) fn report(failure: &Failure, output: &Output) -> ExitCode {
    let code = failure.exit_code();
    if matches!(failure, Failure::Program(_)) {
        return ExitCode::from(code);
    }
    let messages = match failure {
        Failure::Pipeline(Error::Inputs(errors)) => {
            errors.iter().map(ToString::to_string).collect()
        }
        other => vec![in_full(other)],
    };
    output.error(&messages, failure.hint().as_deref(), code);
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::message_and_hint;

    #[test]
    fn message_and_hint_are_told_apart_in_what_clap_prints() {
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
