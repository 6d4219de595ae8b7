//! Plans as the options of rocfft-bench.
//!
//! Source: rocFFT 1.0.32, `clients/bench/bench.cpp`.

use std::fmt;

use crate::plan::{
    ArrayLayout, DataLayout, Direction, FftPlan, GivenLayout, Placement, PlanError, Precision,
    Transform, number, size,
};

/// Options with a value that does not change which kernels are needed.
const IGNORED: [&str; 8] =
    ["--device", "--verbose", "-N", "--ntrial", "-g", "--inputGen", "--isize", "--osize"];
/// Options without a value that don't.
const IGNORED_FLAGS: [&str; 2] = ["--ignore_runtime_failures", "--no-ignore_runtime_failures"];
/// Options that ask for other kernels than those of a plan.
const UNSUPPORTED: [&str; 2] = ["--scalefactor", "--token"];

/// Options that say how values lie: of the input, of the output.
const TYPES: [&str; 2] = ["--itype", "--otype"];
const STRIDES: [&str; 2] = ["--istride", "--ostride"];
const DISTANCES: [&str; 2] = ["--idist", "--odist"];
const OFFSETS: [&str; 2] = ["--ioffset", "--ooffset"];
/// Array types that rocFFT numbers from 0.
const ARRAY_TYPES: u64 = 5;

/// Whether a line that begins with this word is one of rocfft-bench.
pub(crate) fn begins(word: &str) -> bool {
    word.starts_with('-') || word.rsplit('/').next() == Some("rocfft-bench")
}

/// What the options say; of arrays first the input.
#[derive(Default)]
struct Options {
    kind: Option<(Transform, Direction)>,
    precision: Option<Precision>,
    batch: Option<u64>,
    placement: Option<Placement>,
    lengths: Option<Vec<u64>>,
    arrays: [GivenLayout; 2],
}

/// Reads the words of a line that [`begins`] so.
pub(crate) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<FftPlan, PlanError> {
    let mut words = words.skip_while(|word| !word.starts_with('-')).peekable();
    let mut options = Options::default();
    while let Some(word) = words.next() {
        let (option, attached) = split(word);
        let many = if option == "--length" || STRIDES.contains(&option) {
            3
        } else if OFFSETS.contains(&option) {
            2
        } else {
            1
        };
        let mut values: Vec<&str> = attached.into_iter().collect();
        while !is_flag(word)
            && values.len() < many
            && let Some(value) = words.next_if(|word| !word.starts_with('-'))
        {
            values.push(value);
        }
        if !options.take(option, &values)? {
            return Err(PlanError::Option(word.to_owned()));
        }
    }
    options.plan()
}

fn is_flag(word: &str) -> bool {
    ["--double", "-o", "--notInPlace"].contains(&word) || IGNORED_FLAGS.contains(&word)
}

impl Options {
    /// Takes an option; whether there is such a one, and it was not there before.
    fn take(&mut self, option: &str, values: &[&str]) -> Result<bool, PlanError> {
        let value = |expected| values.first().copied().ok_or(PlanError::End(expected));
        let sizes = || {
            value("a number from 1")?;
            values.iter().map(|word| size(word)).collect::<Result<Vec<_>, _>>()
        };
        let position = |names: [&str; 2]| names.iter().position(|name| *name == option);
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
                return Err(PlanError::Unsupported(option.to_owned()));
            }
            _ if IGNORED.contains(&option) => value("a value").map(|_| true)?,
            _ if IGNORED_FLAGS.contains(&option) => true,
            _ => {
                if let Some(array) = position(TYPES) {
                    let found = array_type(value("a number from 0 to 4")?)?;
                    self.arrays[array].array_type.replace(found).is_none()
                } else if let Some(array) = position(STRIDES) {
                    self.arrays[array].strides.replace(sizes()?).is_none()
                } else if let Some(array) = position(DISTANCES) {
                    let found = size(value("a number from 1")?)?;
                    self.arrays[array].distance.replace(found).is_none()
                } else if let Some(array) = position(OFFSETS) {
                    value("a number")?;
                    let found = values.iter().map(|word| from_zero(word)).collect::<Result<_, _>>();
                    std::mem::replace(&mut self.arrays[array].offsets, found?).is_empty()
                } else {
                    false
                }
            }
        })
    }

    fn plan(self) -> Result<FftPlan, PlanError> {
        let (transform, direction) = self.kind.unwrap_or((Transform::C2c, Direction::Forward));
        let lengths = self.lengths.ok_or(PlanError::End("`--length`"))?;
        for (array, option) in self.arrays.iter().zip(STRIDES) {
            if array.strides.as_ref().is_some_and(|strides| strides.len() != lengths.len()) {
                let word = option.to_owned();
                return Err(PlanError::Word { word, expected: "as many strides as lengths after" });
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

/// A plan with a layout of its own, as rocFFT's log has it.
pub(crate) fn write(
    plan: &FftPlan,
    layout: &DataLayout,
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
    let arrays = [&layout.input, &layout.output];
    for (at, ArrayLayout { array_type, offsets, strides, distance }) in
        arrays.into_iter().enumerate()
    {
        write!(f, " {} {array_type} {} {}", TYPES[at], STRIDES[at], list(strides))?;
        if *distance > 0 {
            write!(f, " {} {distance}", DISTANCES[at])?;
        }
        write!(f, " {} {}", OFFSETS[at], list(offsets))?;
    }
    Ok(())
}

/// An option and the value in the same word: `--batchSize=8`, `-b8`.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((option, value)) => (option, Some(value)),
        None if word.starts_with("--") || word.len() <= 2 || !word.is_ascii() => (word, None),
        None => (&word[..2], Some(&word[2..])),
    }
}

fn transform(word: &str) -> Result<(Transform, Direction), PlanError> {
    match word {
        "0" => Ok((Transform::C2c, Direction::Forward)),
        "1" => Ok((Transform::C2c, Direction::Inverse)),
        "2" => Ok((Transform::R2c, Direction::Forward)),
        "3" => Ok((Transform::C2r, Direction::Inverse)),
        _ => Err(PlanError::Word { word: word.to_owned(), expected: "a number from 0 to 3" }),
    }
}

fn precision_of(word: &str) -> Result<Precision, PlanError> {
    match word {
        "half" => Ok(Precision::Half),
        "single" => Ok(Precision::Single),
        "double" => Ok(Precision::Double),
        _ => {
            let expected = "`single`, `double` or `half`";
            Err(PlanError::Word { word: word.to_owned(), expected })
        }
    }
}

fn array_type(word: &str) -> Result<u8, PlanError> {
    let found = number(word).filter(|kind| *kind < ARRAY_TYPES);
    found
        .and_then(|kind| u8::try_from(kind).ok())
        .ok_or_else(|| PlanError::Word { word: word.to_owned(), expected: "a number from 0 to 4" })
}

fn from_zero(word: &str) -> Result<u64, PlanError> {
    number(word).ok_or_else(|| PlanError::Word { word: word.to_owned(), expected: "a number" })
}
