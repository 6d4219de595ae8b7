//! Problems that programs ask MIOpen to compute: one convolution, or a call of another primitive.

use gfxpack_harvest::LineError;

mod check;
mod line;
mod values;

pub use self::values::{Convolution, DataType, Directions, Layout, Problem};
pub use check::MAX_SIZE;
pub(crate) use line::read_unchecked;

/// The error of a word in place of an option.
fn bad_option(option: &str, what: &str) -> LineError {
    let hint = "`MIOpenDriver conv --help` lists the options; each has a value";
    bad_words(&format!("`{option}`"), what, hint)
}

/// The error of words that MIOpenDriver does not know, or that are not supported here.
fn bad_words(words: &str, what: &str, hint: &'static str) -> LineError {
    LineError { why: format!("failed to read {words}: {what}").into(), hint }
}

#[cfg(test)]
mod tests;
