//! Parsers for values that several commands take.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use gfxpack_caches::Shell;
use gfxpack_model::{Target, TargetId, processors};
use gfxpack_plan::shard::Shard;

/// A week, in seconds. Nobody needs a longer limit.
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

/// A possible value: its name, its help, and what it stands for.
pub(crate) type Choice<T> = (&'static str, &'static str, T);

/// Parses one of these values.
pub(crate) fn one_of<T>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let word = |(name, help, _): &Choice<T>| {
        PossibleValue::new(*name).help((!help.is_empty()).then_some(*help))
    };
    PossibleValuesParser::new(choices.iter().map(word)).map(|given| {
        let is_meant = |(name, ..): &&Choice<T>| *name == given;
        choices.iter().find(is_meant).expect("clap lets no other through").2.clone()
    })
}

/// Shells for which lines can be printed.
pub(crate) const SHELLS: [Choice<Shell>; 3] = [
    ("sh", "sh, and what is like it: bash, zsh, dash", Shell::Sh),
    ("fish", "", Shell::Fish),
    ("csh", "", Shell::Csh),
];

/// The text if it is good, otherwise the error `wrong`.
pub(super) fn checked(text: &str, is_good: bool, wrong: &str) -> Result<String, String> {
    if is_good { Ok(text.to_owned()) } else { Err(wrong.to_owned()) }
}

/// A template of packages' names.
pub(super) fn parse_template(text: &str) -> Result<String, String> {
    let wrong = "all targets' packages would have one name\nhint: {gfx} stands for the target: kernels-{gfx}";
    checked(text, text.contains("{gfx}"), wrong)
}

/// Which of several shards.
pub(super) fn parse_shard(text: &str) -> Result<Shard, String> {
    text.parse::<Shard>().map_err(|error| format!("{error}\nhint: {}", error.hint()))
}

/// The path of a file that is put in place when complete, so not `-`.
pub(crate) fn whole_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path == Path::new("-") {
            return Err("standard output can't take it\nhint: give the name of a file; ./- is a \
                        file called -");
        }
        Ok(path)
    })
}

/// A target, or the name of a product with this processor.
pub(crate) fn parse_target(text: &str) -> Result<Target, String> {
    match (text.parse::<Target>(), processors::by_product(text)) {
        (Ok(target), _) => Ok(target),
        (Err(_), Some(processor)) => Ok(Target::new(TargetId::new(processor.name), None)),
        (Err(error), None) => Err(format!("{error}\nhint: {}", error.hint())),
    }
}
