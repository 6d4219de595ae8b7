//! Errors of problems.

/// What is wrong with a problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// Words that MIOpenDriver does not know, or that are not supported here.
    #[error("failed to read {words}: {what}")]
    Words {
        /// The words.
        words: String,
        /// The problem, as a clause.
        what: String,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// A problem that MIOpen could not compute.
    #[error("failed to accept the problem: {what}")]
    Sizes {
        /// The problem, as a clause.
        what: String,
        /// What the user can do about it.
        hint: &'static str,
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
        /// The number of groups.
        groups: u64,
    },
}

impl ProblemError {
    /// An error about a word in place of an operation.
    pub(super) fn operation(words: &str, what: &str) -> Self {
        let hint = "a line looks like `MIOpenDriver conv -n 1 -c 64 -H 56 -W 56 -k 64 …`";
        Self::Words { words: words.to_owned(), what: what.to_owned(), hint }
    }

    /// An error about a word in place of an option.
    pub(super) fn option(option: &str, what: &str) -> Self {
        let hint = "`MIOpenDriver conv --help` lists the options; each has a value";
        Self::Words { words: format!("`{option}`"), what: what.to_owned(), hint }
    }

    /// An error about text that MIOpen itself would not write.
    pub(super) fn text(words: &str, what: String) -> Self {
        let hint = "see whether the line is as MIOpen wrote it";
        Self::Words { words: format!("`{words}`"), what, hint }
    }

    pub(super) fn range(option: &str, value: u64) -> Self {
        let hint = "sizes, strides, dilations and groups are from 1 to 2147483647";
        Self::Sizes { what: format!("{option} is {value}"), hint }
    }

    pub(super) fn too_large(tensor: &str) -> Self {
        let what = format!("its {tensor} has 2^63 bytes or more");
        Self::Sizes { what, hint: "choose a smaller batch" }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Words { hint, .. } | Self::Sizes { hint, .. } => hint,
            Self::Groups { .. } => "the group count divides the channels of input and output",
        }
    }
}

impl From<ProblemError> for gfxpack_model::Error {
    fn from(error: ProblemError) -> Self {
        let (kind, hint) = (gfxpack_model::ErrorKind::Internal, error.hint());
        Self::new(kind, &error, hint).caused_by(error)
    }
}
