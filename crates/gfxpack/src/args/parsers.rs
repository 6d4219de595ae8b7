//! How values are read that several commands take.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use gfxpack_model::{Target, TargetId, processors};

/// A week, in seconds: whoever wants more means none.
const MAX_TIMEOUT: u64 = 7 * 24 * 3600;

/// A time limit, in whole seconds.
pub(super) fn parse_timeout(text: &str) -> Result<u64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=MAX_TIMEOUT).contains(seconds));
    seconds.ok_or_else(|| {
        format!(
            "it is no number of seconds\nhint: write whole seconds, from 1 to {MAX_TIMEOUT}: 900"
        )
    })
}

/// A file that is written whole, so no stream.
pub(crate) fn whole_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path == Path::new("-") {
            return Err("standard output can't take it\nhint: give the name of a file; ./- is a \
                        file called -");
        }
        Ok(path)
    })
}

/// A target, or the name of a product that has it.
pub(crate) fn parse_target(text: &str) -> Result<Target, String> {
    match (text.parse::<Target>(), processors::by_product(text)) {
        (Ok(target), _) => Ok(target),
        (Err(_), Some(processor)) => Ok(Target::new(TargetId::new(processor.name), None)),
        (Err(error), None) => Err(format!("{error}\nhint: {}", error.hint())),
    }
}
