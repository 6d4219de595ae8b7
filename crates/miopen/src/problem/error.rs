//! Why a line is no problem for MIOpen.

/// What is wrong with a problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// There is no word in it.
    #[error("failed to read the problem: it is empty")]
    Empty,
    /// MIOpenDriver has no such operation.
    #[error("failed to read `{0}`: MIOpenDriver has no such operation")]
    Operation(String),
    /// A word stands where an option should.
    #[error("failed to read `{0}`: it is no option")]
    NotAnOption(String),
    /// MIOpenDriver's convolutions have no such option.
    #[error("failed to read `{0}`: MIOpenDriver's convolutions have no such option")]
    Option(String),
    /// An option without value at the end.
    #[error("failed to read `{0}`: its value is missing")]
    NoValue(String),
    /// A value that is not what its option takes.
    #[error("failed to read `{option} {value}`: {expected} expected")]
    Value {
        /// The option as it was written.
        option: String,
        /// The value as it was written.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// An option of MIOpenDriver for tensors that are not described here.
    #[error("failed to read `{option} {value}`: such tensors are not supported")]
    Unsupported {
        /// The option as it was written.
        option: String,
        /// The value as it was written.
        value: String,
    },
    /// A size that no convolution has.
    #[error("failed to accept the problem: {option} is {value}")]
    Range {
        /// MIOpenDriver's long name of it.
        option: &'static str,
        /// The size.
        value: u64,
    },
    /// Channels that can't be divided into the groups.
    #[error(
        "failed to accept the problem: {in_channels} and {out_channels} channels do not divide into groups: {groups}"
    )]
    Groups {
        /// Of the input.
        in_channels: u64,
        /// Of the output.
        out_channels: u64,
        /// How many groups.
        groups: u64,
    },
    /// Nothing is to be computed, which no line can say.
    #[error("failed to accept the problem: it has no direction")]
    NoDirection,
    /// A tensor of 2^63 bytes or more.
    #[error("failed to accept the problem: its {tensor} has 2^63 bytes or more")]
    TooLarge {
        /// Which: input, filter or output.
        tensor: &'static str,
    },
    /// A word with characters that mean something to a shell.
    #[error("failed to read `{0}`: it has characters that no option of MIOpenDriver has")]
    Word(String),
}

impl ProblemError {
    pub(super) fn range(option: &'static str, value: u64) -> Self {
        Self::Range { option, value }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::Operation(_) => {
                "a line looks like `MIOpenDriver conv -n 1 -c 64 -H 56 -W 56 -k 64 …`"
            }
            Self::NotAnOption(_) | Self::Option(_) | Self::NoValue(_) => {
                "`MIOpenDriver conv --help` lists the options; each has a value"
            }
            Self::Value { .. } | Self::Word(_) => "see whether the line is as MIOpen wrote it",
            Self::Unsupported { .. } => {
                "tensors are NCHW, NHWC, NCDHW or NDHWC, of fp32, fp16, bf16 or int8"
            }
            Self::Range { .. } => "sizes, strides, dilations and groups are from 1 to 2147483647",
            Self::Groups { .. } => "the group count divides the channels of input and output",
            Self::NoDirection => "choose forward, backward data or backward weights",
            Self::TooLarge { .. } => "choose a smaller batch",
        }
    }
}
