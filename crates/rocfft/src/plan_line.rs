//! Plans as lines of text.

use std::fmt;
use std::str::FromStr;

use gfxpack_harvest::LineError;

use crate::bench_line;
use crate::plan::{Direction, FftPlan, Placement, Precision, Transform, ended, size, unexpected};

impl FromStr for FftPlan {
    type Err = LineError;

    /// Parses a line of four words, optionally followed by `batch N` and a direction, or options of
    /// rocfft-bench with or without the program's name.
    fn from_str(line: &str) -> Result<Self, LineError> {
        let mut words = line.split_whitespace().peekable();
        if words.peek().is_some_and(|word| bench_line::begins(word)) {
            return bench_line::parse(words);
        }
        let mut next = |expected| words.next().ok_or_else(|| ended(expected));
        let transform = Transform::from_word(next("`c2c`, `r2c` or `c2r`")?)?;
        let precision = Precision::from_word(next("`half`, `sp` or `dp`")?)?;
        let placement = Placement::from_word(next("`ip` or `op`")?)?;
        let given_lengths = next("lengths like `1024x1024`")?;
        let lengths = given_lengths.split('x').map(size).collect::<Result<Vec<_>, _>>()?;
        if lengths.len() > 3 {
            return Err(unexpected(given_lengths, "one to three lengths"));
        }
        let (mut batch, mut direction) = (None, None);
        while let Some(word) = words.next() {
            if word == "batch" && batch.is_none() {
                batch = Some(size(words.next().ok_or_else(|| ended("a number from 1"))?)?);
            } else if direction.is_none() && word != "batch" {
                direction = Some(Direction::from_word(word)?);
            } else {
                return Err(unexpected(word, "the end"));
            }
        }
        let direction = match (transform, direction) {
            (Transform::C2c, given) => given.unwrap_or(Direction::Both),
            (Transform::R2c, None | Some(Direction::Forward)) => Direction::Forward,
            (Transform::C2r, None | Some(Direction::Inverse)) => Direction::Inverse,
            (_, Some(given)) => {
                let expected = "the direction of a real transform, `r2c fwd` or `c2r inv`,";
                return Err(unexpected(given.name(), expected));
            }
        };
        let batch = batch.unwrap_or(1);
        Self { transform, direction, precision, placement, lengths, batch, layout: None }
            .checked(Default::default())
    }
}

impl fmt::Display for FftPlan {
    /// The canonical line, which is parsed as the same plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(layout) = &self.layout {
            return bench_line::write(self, layout, f);
        }
        let lengths: Vec<_> = self.lengths.iter().map(u64::to_string).collect();
        let (precision, placement) = (self.precision.name(), self.placement.name());
        write!(f, "{} {precision} {placement} {}", self.transform.name(), lengths.join("x"))?;
        if self.batch > 1 {
            write!(f, " batch {}", self.batch)?;
        }
        if self.transform == Transform::C2c && self.direction != Direction::Both {
            write!(f, " {}", self.direction.name())?;
        }
        Ok(())
    }
}
