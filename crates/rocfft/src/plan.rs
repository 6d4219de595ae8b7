//! What is to be transformed: a plan of rocFFT.

use std::fmt;

/// Most values in all of a plan's transforms together: with 16 bytes each,
/// their buffer can still have an address.
const MAX_VALUES: u64 = 1 << 58;

/// Plans of rocFFT that differ in direction at most, with unit strides and
/// interleaved complex numbers. The text is described in
/// `docs/rocfft-format.md`: `c2c sp ip 1024x1024 batch 8`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FftPlan {
    /// What is transformed into what.
    pub transform: Transform,
    /// Which ways; of real numbers there is one.
    pub direction: Direction,
    /// The size of numbers.
    pub precision: Precision,
    /// Where the result goes.
    pub placement: Placement,
    /// One to three lengths, as programs and rocfft-bench have them: the
    /// values of the last dimension lie next to each other. `rocfft_plan_create`
    /// takes them in the opposite order.
    pub lengths: Vec<u64>,
    /// How many transforms; at least 1.
    pub batch: u64,
}

macro_rules! words {
    ($(#[$outer:meta])* $name:ident, $what:literal { $($(#[$inner:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$inner])* $variant,)* }

        impl $name {
            /// The word in a line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            pub(crate) fn from_word(word: &str) -> Result<Self, PlanError> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(PlanError::Word { word: word.to_owned(), expected: $what }),
                }
            }
        }
    };
}

words! {
    /// What is transformed into what.
    Transform, "`c2c`, `r2c` or `c2r`" {
        /// Complex numbers into complex ones.
        C2c = "c2c",
        /// Real numbers into the half of the complex ones that says all, forward.
        R2c = "r2c",
        /// The inverse of that.
        C2r = "c2r",
    }
}

words! {
    /// Which way a transform goes.
    Direction, "`fwd`, `inv` or `both`" {
        /// Forward.
        Forward = "fwd",
        /// Inverse.
        Inverse = "inv",
        /// A plan for each.
        Both = "both",
    }
}

words! {
    /// The size of numbers.
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
    /// Where the result goes.
    Placement, "`ip` or `op`" {
        /// Into the buffer of the input.
        InPlace = "ip",
        /// Into another one.
        OutOfPlace = "op",
    }
}

/// Why a line is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A word that does not belong at its place.
    #[error("failed to read `{word}`: {expected} expected")]
    Word {
        /// The word.
        word: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The line ends too early.
    #[error("failed to read the plan: {0} expected at its end")]
    End(&'static str),
    /// rocfft-bench has no such option, or it can't be given twice.
    #[error("failed to read `{0}`: rocfft-bench has no such option, or it is there twice")]
    Option(String),
    /// Strides, offsets or array types that these plans don't have.
    #[error("failed to accept `{0}`: only unit strides and interleaved arrays are supported")]
    Unsupported(String),
    /// More values than there are addresses for.
    #[error("failed to accept the plan: its transforms have too many values")]
    TooLarge,
}

impl PlanError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Word { .. } | Self::End(_) => {
                "write lines like `c2c sp ip 1024x1024 batch 8 fwd`, or rocfft-bench's options, \
                 `--length 1024 1024 -b 8`"
            }
            Self::Option(_) => "`rocfft-bench --help` lists its options",
            Self::Unsupported(_) => {
                "have a program that uses such plans log its kernels: ROCFFT_LAYER=32 \
                 ROCFFT_LOG_RTC_PATH=FILE"
            }
            Self::TooLarge => "check lengths and batch",
        }
    }
}

impl FftPlan {
    /// The plans as `rocfft_transform_type` numbers them: one, or two if both
    /// directions are wanted.
    ///
    /// Source: rocFFT 1.0.32, `rocfft.h`.
    #[must_use]
    pub fn transform_types(&self) -> &'static [u32] {
        match (self.transform, self.direction) {
            (Transform::C2c, Direction::Forward) => &[0],
            (Transform::C2c, Direction::Inverse) => &[1],
            (Transform::C2c, Direction::Both) => &[0, 1],
            (Transform::R2c, _) => &[2],
            (Transform::C2r, _) => &[3],
        }
    }

    /// Makes sure that sizes can be had.
    pub(crate) fn checked(self) -> Result<Self, PlanError> {
        let values = self.lengths.iter().try_fold(self.batch, |n, length| n.checked_mul(*length));
        match values {
            Some(values) if values <= MAX_VALUES => Ok(self),
            _ => Err(PlanError::TooLarge),
        }
    }
}

/// A whole number from 1.
pub(crate) fn size(word: &str) -> Result<u64, PlanError> {
    // `parse` takes a plus sign, too.
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|number| digits && *number > 0);
    number.ok_or_else(|| PlanError::Word { word: word.to_owned(), expected: "a number from 1" })
}

impl fmt::Display for FftPlan {
    /// The canonical line, which is read back as the same plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
