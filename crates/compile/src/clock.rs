//! Kernels that ask when they are compiled: no two builds agree on them.
//!
//! A text that names one of the macros may do so in a comment, or in a branch
//! that is never taken, or with a definition of its own. So the preprocessor
//! is asked, and only for such texts.

use std::fs;
use std::path::Path;

use gfxpack_plan::plan::Job;

use crate::engine::{Engine, Starter};
use crate::error::CompileError;
use crate::process::End;

/// Compilers from clang 16 on take two of them from SOURCE_DATE_EPOCH, earlier
/// ones none.
const MACROS: [&str; 3] = ["__TIME__", "__DATE__", "__TIMESTAMP__"];

/// Whether a text names one of the macros anywhere.
pub(crate) fn is_named_in(text: &[u8]) -> bool {
    MACROS.iter().any(|name| memchr::memmem::find(text, name.as_bytes()).is_some())
}

/// Whether a job's source or arguments name one of the macros.
pub(crate) fn is_named_by(engine: &Engine<'_>, job: &Job) -> bool {
    let named = |word: &str| is_named_in(word.as_bytes());
    engine.sources.names_clock(job.source) || job.arguments.iter().any(named)
}

/// The macro, if any, whose value stands in what the preprocessor makes of a
/// job's staged source. A definition of the job's own comes after ours, so that
/// it counts.
///
/// # Errors
/// [`CompileError`] where the preprocessor can't be started, or was stopped.
pub(crate) fn asked_for(
    engine: &Engine<'_>,
    starter: &mut Starter<'_>,
    job: &Job,
    stage: &Path,
    scratch: &Path,
) -> Result<Option<&'static str>, CompileError> {
    let file = scratch.join("clock");
    let marks: Vec<String> =
        (0..MACROS.len()).map(|number| format!("-D{}={}", MACROS[number], mark(number))).collect();
    // That they are redefined is no fault of the job's.
    let more: Vec<&str> = marks.iter().map(String::as_str).chain(["-w"]).collect();
    match engine.preprocess(starter, job, stage, scratch, &more, &file)? {
        End::Cancelled => return Err(CompileError::Interrupted),
        End::Exited(0) => {}
        // The time as a file's name, or the like.
        _ => return Ok(Some(MACROS[0])),
    }
    let text = fs::read(&file).map_err(CompileError::io("read", &file))?;
    fs::remove_file(&file).ok();
    let stands = |number: &usize| memchr::memmem::find(&text, mark(*number).as_bytes()).is_some();
    Ok((0..MACROS.len()).find(stands).map(|number| MACROS[number]))
}

/// What stands for a macro.
fn mark(number: usize) -> String {
    format!("gfxpack_clock_{number}_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_may_ask_for_the_time_are_told() {
        for text in ["__TIME__", "// __DATE__", "char s[] = __TIMESTAMP__;"] {
            assert!(is_named_in(text.as_bytes()), "{text}");
        }
        assert!(!is_named_in(b"__TIME_, __FILE__"));
    }
}
