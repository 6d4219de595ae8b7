//! How values are read that several commands take.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use gfxpack_model::Target;

/// A week, in seconds: whoever wants more means none.
pub(super) const MAX_TIMEOUT: u64 = 7 * 24 * 3600;

/// A file that is written whole, so no stream.
pub(crate) fn whole_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path == Path::new("-") {
            return Err("it is written as a whole, not to stdout\nhint: name a file; ./- is one \
                        of that name");
        }
        Ok(path)
    })
}

pub(crate) fn parse_target(text: &str) -> Result<Target, String> {
    text.parse::<Target>().map_err(|error| format!("{error}\nhint: {}", error.hint()))
}
