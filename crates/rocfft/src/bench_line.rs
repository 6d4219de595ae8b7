//! Plans as the options of rocfft-bench.
//!
//! Source: rocFFT 1.0.32, `clients/bench/bench.cpp`.

use crate::plan::{Direction, FftPlan, Placement, PlanError, Precision, Transform, size};

/// Options with a value that does not change which kernels are needed.
const IGNORED: [&str; 8] =
    ["--device", "--verbose", "-N", "--ntrial", "-g", "--inputGen", "--isize", "--osize"];
/// Options without a value that don't.
const IGNORED_FLAGS: [&str; 2] = ["--ignore_runtime_failures", "--no-ignore_runtime_failures"];
/// Options that ask for other kernels than those of a plain plan.
const UNSUPPORTED: [&str; 10] = [
    "--idist",
    "--odist",
    "--istride",
    "--ostride",
    "--ioffset",
    "--ooffset",
    "--itype",
    "--otype",
    "--scalefactor",
    "--token",
];

/// Whether a line that begins with this word is one of rocfft-bench.
pub(crate) fn begins(word: &str) -> bool {
    word.starts_with('-') || word.rsplit('/').next() == Some("rocfft-bench")
}

/// Reads the words of a line that [`begins`] so.
pub(crate) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<FftPlan, PlanError> {
    let mut words = words.skip_while(|word| !word.starts_with('-')).peekable();
    let (mut kind, mut precision, mut batch) = (None, None, None);
    let (mut placement, mut lengths) = (None, None);
    while let Some(word) = words.next() {
        let (option, attached) = split(word);
        // Not inside the arms: every option but flags takes one.
        let mut value = |expected| match attached {
            Some(value) => Ok(value),
            None => words.next().ok_or(PlanError::End(expected)),
        };
        let fresh = match option {
            "-t" | "--transformType" => {
                kind.replace(transform(value("a number from 0 to 3")?)?).is_none()
            }
            "--precision" => {
                precision.replace(precision_of(value("`single`, `double` or `half`")?)?).is_none()
            }
            "--double" => precision.replace(Precision::Double).is_none(),
            "-b" | "--batchSize" => batch.replace(size(value("a number from 1")?)?).is_none(),
            "-o" | "--notInPlace" if attached.is_none() => {
                placement.replace(Placement::OutOfPlace).is_none()
            }
            "--length" => {
                let mut found = vec![size(value("a number from 1")?)?];
                while found.len() < 3
                    && let Some(word) = words.next_if(|word| !word.starts_with('-'))
                {
                    found.push(size(word)?);
                }
                lengths.replace(found).is_none()
            }
            _ if UNSUPPORTED.contains(&option) => {
                return Err(PlanError::Unsupported(option.to_owned()));
            }
            _ if IGNORED.contains(&option) => value("a value").map(|_| true)?,
            _ => IGNORED_FLAGS.contains(&word),
        };
        if !fresh {
            return Err(PlanError::Option(word.to_owned()));
        }
    }
    let (transform, direction) = kind.unwrap_or((Transform::C2c, Direction::Forward));
    FftPlan {
        transform,
        direction,
        precision: precision.unwrap_or(Precision::Single),
        placement: placement.unwrap_or(Placement::InPlace),
        lengths: lengths.ok_or(PlanError::End("`--length`"))?,
        batch: batch.unwrap_or(1),
    }
    .checked()
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
