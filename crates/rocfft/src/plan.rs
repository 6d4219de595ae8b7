//! A plan of rocFFT, a description of transforms, and its line of text.

use std::fmt;
use std::str::FromStr;

use gfxpack_harvest::LineError;

use crate::bench_line;

/// The most values in all transforms of a plan together: with 16 bytes each, their buffer is still
/// addressable.
const MAX_VALUES: u64 = 1 << 58;

/// `rocfft_array_type`.
const COMPLEX: u8 = 0;
const REAL: u8 = 2;
const HALF: u8 = 3;

/// Plans of rocFFT that differ at most in direction. `docs/rocfft-format.md` describes the text:
/// `c2c sp ip 1024x1024 batch 8`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FftPlan {
    /// The type of transform.
    pub transform: Transform,
    /// The direction; for real numbers there is only one.
    pub direction: Direction,
    /// The precision of numbers.
    pub precision: Precision,
    /// The destination of the result.
    pub placement: Placement,
    /// One to three lengths, in the order of programs and rocfft-bench: values of the last
    /// dimension are adjacent. `rocfft_plan_create` expects the opposite order.
    pub lengths: Vec<u64>,
    /// The number of transforms; at least 1.
    pub batch: u64,
    /// The layouts of the input and of the result in memory, if they are not rocFFT's default.
    pub layout: Option<[ArrayLayout; 2]>,
}

/// The layout of one array's values in memory. All counts are in values.
///
/// Source: rocFFT 1.0.32, `rocfft.h`, `rocfft_plan_description_set_data_layout`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayLayout {
    /// `rocfft_array_type`: 0 and 1 complex, interleaved and planar; 2 real; 3 and 4 half-complex,
    /// interleaved and planar.
    pub array_type: u8,
    /// The position of the first value; the second number is for planar arrays.
    pub offsets: [u64; 2],
    /// The distance of values along each dimension, in the order of the plan's lengths.
    pub strides: Vec<u64>,
    /// The distance of transforms; 0 if rocFFT chooses it.
    pub distance: u64,
}

macro_rules! words {
    ($(#[$outer:meta])* $name:ident, $what:literal { $($(#[$inner:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$inner])* $variant,)* }

        impl $name {
            /// The word in a line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            pub(crate) fn from_word(word: &str) -> Result<Self, LineError> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(unexpected(word, $what)),
                }
            }
        }
    };
}

words! {
    /// The type of transform.
    Transform, "`c2c`, `r2c` or `c2r`" {
        /// Complex to complex.
        C2c = "c2c",
        /// Real to half-complex, forward.
        R2c = "r2c",
        /// Half-complex to real, inverse.
        C2r = "c2r",
    }
}

words! {
    /// The direction of a transform.
    Direction, "`fwd`, `inv` or `both`" {
        /// Forward.
        Forward = "fwd",
        /// Inverse.
        Inverse = "inv",
        /// One plan for each direction.
        Both = "both",
    }
}

words! {
    /// The precision of numbers.
    Precision, "`half`, `sp` or `dp`" {
        /// 16 bits.
        Half = "half",
        /// 32 bits.
        Single = "sp",
        /// 64 bits.
        Double = "dp",
    }
}

words! {
    /// The destination of the result.
    Placement, "`ip` or `op`" {
        /// The input buffer.
        InPlace = "ip",
        /// Another buffer.
        OutOfPlace = "op",
    }
}

/// The forms of a plan's line.
const FORMS: &str = "write lines like `c2c sp ip 1024x1024 batch 8 fwd`, or rocfft-bench's options, \
                     `--length 1024 1024 -b 8`";
/// A plan has more values than can be addressed.
const TOO_LARGE: LineError = LineError::new(
    "failed to accept the plan: its transforms have too many values",
    "check lengths and batch",
);

/// The error of another word than one of those that are expected.
pub(crate) fn unexpected(word: &str, expected: &str) -> LineError {
    LineError { why: format!("failed to read `{word}`: {expected} expected").into(), hint: FORMS }
}

/// The error of a line that ends before what is expected.
pub(crate) fn ended(expected: &str) -> LineError {
    let why = format!("failed to read the plan: {expected} expected at its end");
    LineError { why: why.into(), hint: FORMS }
}

impl FftPlan {
    /// The plans as values of `rocfft_transform_type`: one, or two for both directions.
    ///
    /// Source: rocFFT 1.0.32, `rocfft.h`.
    pub fn transform_types(&self) -> &'static [u32] {
        match (self.transform, self.direction) {
            (Transform::C2c, Direction::Forward) => &[0],
            (Transform::C2c, Direction::Inverse) => &[1],
            (Transform::C2c, Direction::Both) => &[0, 1],
            (Transform::R2c, _) => &[2],
            (Transform::C2r, _) => &[3],
        }
    }

    /// rocFFT's layout if [`FftPlan::layout`] is `None`.
    ///
    /// Source: rocFFT 1.0.32, `plan.cpp`, `rocfft_plan_description_t::init_defaults`.
    fn default_layout(&self) -> [ArrayLayout; 2] {
        let array = |array_type: u8| {
            let mut rows = self.lengths.clone();
            if let Some(row) = rows.last_mut() {
                let half = *row / 2 + 1;
                match (array_type, self.placement) {
                    (REAL, Placement::InPlace) => *row = half * 2,
                    (HALF, _) => *row = half,
                    _ => {}
                }
            }
            let mut distance = 1;
            let mut strides: Vec<u64> = Vec::with_capacity(rows.len());
            for length in rows.into_iter().rev() {
                strides.push(distance);
                distance *= length;
            }
            strides.reverse();
            ArrayLayout { array_type, offsets: [0, 0], strides, distance }
        };
        let types = match self.transform {
            Transform::C2c => [COMPLEX, COMPLEX],
            Transform::R2c => [REAL, HALF],
            Transform::C2r => [HALF, REAL],
        };
        types.map(array)
    }

    /// Checks sizes, and drops a layout that is rocFFT's default. `given` is the known part of the
    /// layouts of input and output.
    pub(crate) fn checked(mut self, given: [GivenLayout; 2]) -> Result<Self, LineError> {
        let values = self.lengths.iter().try_fold(self.batch, |n, length| n.checked_mul(*length));
        if values.is_none_or(|values| values > MAX_VALUES) {
            return Err(TOO_LARGE);
        }
        let default = self.default_layout();
        let ([input, output], [own_input, own_output]) = (given, &default);
        let wanted = [input.over(own_input), output.over(own_output)];
        for array in &wanted {
            let counts = self.lengths.iter().zip(&array.strides);
            let extent = counts
                .chain([(&self.batch, &array.distance)])
                .try_fold(array.offsets[0].max(array.offsets[1]), |sum: u64, (count, step)| {
                    sum.checked_add(count.checked_mul(*step)?)
                });
            if extent.is_none_or(|extent| extent > MAX_VALUES) {
                return Err(TOO_LARGE);
            }
        }
        self.layout = Some(wanted).filter(|wanted| *wanted != default);
        Ok(self)
    }
}

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

/// The given part of an array's layout.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenLayout {
    pub(crate) array_type: Option<u8>,
    pub(crate) offsets: Vec<u64>,
    pub(crate) strides: Option<Vec<u64>>,
    pub(crate) distance: Option<u64>,
}

impl GivenLayout {
    /// Completes the layout with rocFFT's default. rocFFT computes a distance from given strides.
    fn over(self, default: &ArrayLayout) -> ArrayLayout {
        let strides = self.strides.unwrap_or_else(|| default.strides.clone());
        let own_distance = if strides == default.strides { default.distance } else { 0 };
        let mut offsets = default.offsets;
        for (place, offset) in offsets.iter_mut().zip(self.offsets) {
            *place = offset;
        }
        ArrayLayout {
            array_type: self.array_type.unwrap_or(default.array_type),
            offsets,
            distance: self.distance.unwrap_or(own_distance),
            strides,
        }
    }
}

/// A whole number of at least 1.
pub(crate) fn size(word: &str) -> Result<u64, LineError> {
    let number = number(word).filter(|number| *number > 0);
    number.ok_or_else(|| unexpected(word, "a number from 1"))
}

/// A whole number.
pub(crate) fn number(word: &str) -> Option<u64> {
    // `parse` also accepts a plus sign.
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| digits)
}
