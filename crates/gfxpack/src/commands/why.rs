//! `plan --explain`: what a job's digest covers, and why it would run.

use gfxpack_pipeline::explain::explain_keys;
use gfxpack_pipeline::prepare::Prepared;

use crate::fail::Result;
use crate::output::Output;

/// Keys that are explained in one run.
const MAX_KEYS: usize = 20;

/// Explains every key that contains the text.
pub(crate) fn run(prepared: &Prepared, text: &str, output: &Output) -> Result {
    let more = explain_keys(prepared, text, MAX_KEYS, |explained| {
        output.message("explained", &explained.message(prepared));
        let lines = explained.in_words(prepared, output.verbose);
        lines.iter().for_each(|line| output.text(line));
    })?;
    if more > 0 {
        output.warn(&format!("{more} more keys contain `{text}`"));
    }
    Ok(())
}
