//! What is said about lines of logs and lists that can't be read.

use gfxpack_harvest::{Skipped, Skips};
use serde_json::{Value, json};

use crate::error::{self, Result};
use crate::progress::Progress;
use crate::text::if_any;

/// The warning about lines of one kind, with what to do.
pub fn warning(file: &str, skipped: &Skipped) -> String {
    format!("{}\nhint: {}", what(file, skipped), skipped.hint)
}

fn what(file: &str, skipped: &Skipped) -> String {
    let Skipped { why, lines, first, text, .. } = skipped;
    let more = if_any(lines.saturating_sub(1), |_| format!(" ({lines} such lines)"));
    format!("{file}:{first}: {why}{more}: {text}")
}

/// The lines as a part of a message.
pub fn message(skips: &Skips) -> Vec<Value> {
    let kind = |Skipped { why, lines, first, text, .. }: &Skipped| json!({ "reason": why, "lines": lines, "first_line": first, "text": text });
    skips.iter().map(kind).collect()
}

/// Fails for the first of the lines.
///
/// # Errors
/// If there are any.
pub fn refuse(file: &str, skips: &Skips) -> Result<()> {
    skips.iter().next().map_or(Ok(()), |first| Err(error::usage(what(file, first), first.hint)))
}

/// Warns about the lines.
///
/// # Errors
/// If they are to be `strict`ly refused.
pub(crate) fn report(
    file: &str,
    skips: &Skips,
    strict: bool,
    progress: &dyn Progress,
) -> Result<()> {
    if strict {
        refuse(file, skips)?;
    }
    skips.iter().for_each(|skipped| progress.warning(&warning(file, skipped)));
    Ok(())
}
