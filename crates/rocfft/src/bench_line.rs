//! Plans as the options of rocfft-bench.
//!
//! Source: rocFFT 1.0.32, `clients/bench/bench.cpp`.

use std::fmt;

use gfxpack_harvest::LineError;

use crate::plan::{
    ArrayLayout, Direction, FftPlan, GivenLayout, Placement, Precision, Transform, ended, number,
    size, unexpected,
};

/// Options with a value that do not affect which kernels are needed.
const IGNORED: [&str; 8] =
    ["--device", "--verbose", "-N", "--ntrial", "-g", "--inputGen", "--isize", "--osize"];
/// The same without a value.
const IGNORED_FLAGS: [&str; 2] = ["--ignore_runtime_failures", "--no-ignore_runtime_failures"];
/// Options that need other kernels than those of a plan.
const UNSUPPORTED: [&str; 2] = ["--scalefactor", "--token"];

/// Array types that rocFFT numbers from 0.
const ARRAY_TYPES: u8 = 5;

/// Whether a line that begins with this word is in rocfft-bench's syntax.
pub(crate) fn begins(word: &str) -> bool {
    word.starts_with('-') || word.rsplit('/').next() == Some("rocfft-bench")
}

/// The values of the options; arrays have the input first.
#[derive(Default)]
struct Options {
    kind: Option<(Transform, Direction)>,
    precision: Option<Precision>,
    batch: Option<u64>,
    placement: Option<Placement>,
    lengths: Option<Vec<u64>>,
    arrays: [GivenLayout; 2],
}

/// Parses the words of a line for which [`begins`] is true.
pub(crate) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<FftPlan, LineError> {
    let mut words = words.skip_while(|word| !word.starts_with('-')).peekable();
    let mut options = Options::default();
    while let Some(word) = words.next() {
        let (option, attached) = split(word);
        let many = match option {
            "--length" | "--istride" | "--ostride" => 3,
            "--ioffset" | "--ooffset" => 2,
            _ => 1,
        };
        let mut values: Vec<&str> = attached.into_iter().collect();
        while !is_flag(word)
            && values.len() < many
            && let Some(value) = words.next_if(|word| !word.starts_with('-'))
        {
            values.push(value);
        }
        if !options.take(option, &values)? {
            let what = "rocfft-bench has no such option, or it is there twice";
            let why = format!("failed to read `{word}`: {what}").into();
            return Err(LineError { why, hint: "`rocfft-bench --help` lists its options" });
        }
    }
    options.plan()
}

fn is_flag(word: &str) -> bool {
    ["--double", "-o", "--notInPlace"].contains(&word) || IGNORED_FLAGS.contains(&word)
}

impl Options {
    /// Handles an option. Returns whether it exists and was not given before.
    fn take(&mut self, option: &str, values: &[&str]) -> Result<bool, LineError> {
        let value = |expected| values.first().copied().ok_or_else(|| ended(expected));
        let sizes = || {
            value("a number from 1")?;
            values.iter().map(|word| size(word)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match option {
            "-t" | "--transformType" => {
                self.kind.replace(transform(value("a number from 0 to 3")?)?).is_none()
            }
            "--precision" => {
                let word = value("`single`, `double` or `half`")?;
                self.precision.replace(precision_of(word)?).is_none()
            }
            "--double" => self.precision.replace(Precision::Double).is_none(),
            "-b" | "--batchSize" => self.batch.replace(size(value("a number from 1")?)?).is_none(),
            "-o" | "--notInPlace" if values.is_empty() => {
                self.placement.replace(Placement::OutOfPlace).is_none()
            }
            "--length" => self.lengths.replace(sizes()?).is_none(),
            _ if UNSUPPORTED.contains(&option) => {
                let why = format!("failed to accept `{option}`: plans with that are not supported");
                let hint = "remove the line: a program compiles its kernels by itself";
                return Err(LineError { why: why.into(), hint });
            }
            _ if IGNORED.contains(&option) => value("a value").map(|_| true)?,
            _ if IGNORED_FLAGS.contains(&option) => true,
            _ => {
                let Some((array, what)) = array_option(option) else { return Ok(false) };
                let array = &mut self.arrays[array];
                match what {
                    "type" => {
                        let found = array_type(value("a number from 0 to 4")?)?;
                        array.array_type.replace(found).is_none()
                    }
                    "stride" => array.strides.replace(sizes()?).is_none(),
                    "dist" => array.distance.replace(size(value("a number from 1")?)?).is_none(),
                    "offset" => {
                        value("a number")?;
                        let found = values.iter().map(|word| from_zero(word));
                        let found = found.collect::<Result<_, _>>()?;
                        std::mem::replace(&mut array.offsets, found).is_empty()
                    }
                    _ => false,
                }
            }
        })
    }

    fn plan(self) -> Result<FftPlan, LineError> {
        let (transform, direction) = self.kind.unwrap_or((Transform::C2c, Direction::Forward));
        let lengths = self.lengths.ok_or_else(|| ended("`--length`"))?;
        for (array, option) in self.arrays.iter().zip(["--istride", "--ostride"]) {
            if array.strides.as_ref().is_some_and(|strides| strides.len() != lengths.len()) {
                return Err(unexpected(option, "as many strides as lengths after"));
            }
        }
        let plan = FftPlan {
            transform,
            direction,
            precision: self.precision.unwrap_or(Precision::Single),
            placement: self.placement.unwrap_or(Placement::InPlace),
            lengths,
            batch: self.batch.unwrap_or(1),
            layout: None,
        };
        plan.checked(self.arrays)
    }
}

/// Writes a plan with a layout of its own in the form of rocFFT's log.
pub(crate) fn write(
    plan: &FftPlan,
    layout: &[ArrayLayout; 2],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let list = |numbers: &[u64]| {
        let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
        words.join(" ")
    };
    let precision = match plan.precision {
        Precision::Half => "half",
        Precision::Single => "single",
        Precision::Double => "double",
    };
    write!(f, "rocfft-bench --length {} -b {}", list(&plan.lengths), plan.batch)?;
    if plan.placement == Placement::OutOfPlace {
        f.write_str(" -o")?;
    }
    write!(f, " -t {} --precision {precision}", plan.transform_types()[0])?;
    for (side, array) in ["i", "o"].into_iter().zip(layout) {
        let ArrayLayout { array_type, offsets, strides, distance } = array;
        write!(f, " --{side}type {array_type} --{side}stride {}", list(strides))?;
        if *distance > 0 {
            write!(f, " --{side}dist {distance}")?;
        }
        write!(f, " --{side}offset {}", list(offsets))?;
    }
    Ok(())
}

/// The array and the property of an option: `--itype` gives 0, the input, and `type`; `--otype`
/// gives 1, the output.
fn array_option(option: &str) -> Option<(usize, &str)> {
    let (side, what) = option.strip_prefix("--")?.split_at_checked(1)?;
    Some((["i", "o"].iter().position(|name| *name == side)?, what))
}

/// An option and the value in the same word: `--batchSize=8`, `-b8`.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((option, value)) => (option, Some(value)),
        None if word.starts_with("--") || word.len() <= 2 || !word.is_ascii() => (word, None),
        None => (&word[..2], Some(&word[2..])),
    }
}

fn transform(word: &str) -> Result<(Transform, Direction), LineError> {
    match word {
        "0" => Ok((Transform::C2c, Direction::Forward)),
        "1" => Ok((Transform::C2c, Direction::Inverse)),
        "2" => Ok((Transform::R2c, Direction::Forward)),
        "3" => Ok((Transform::C2r, Direction::Inverse)),
        _ => Err(unexpected(word, "a number from 0 to 3")),
    }
}

pub(crate) fn precision_of(word: &str) -> Result<Precision, LineError> {
    match word {
        "half" => Ok(Precision::Half),
        "single" => Ok(Precision::Single),
        "double" => Ok(Precision::Double),
        _ => Err(unexpected(word, "`single`, `double` or `half`")),
    }
}

fn array_type(word: &str) -> Result<u8, LineError> {
    let found = number(word).and_then(|kind| u8::try_from(kind).ok());
    let found = found.filter(|kind| *kind < ARRAY_TYPES);
    found.ok_or_else(|| unexpected(word, "a number from 0 to 4"))
}

fn from_zero(word: &str) -> Result<u64, LineError> {
    number(word).ok_or_else(|| unexpected(word, "a number"))
}
