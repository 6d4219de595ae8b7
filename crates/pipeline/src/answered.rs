//! What a stock library asked for.

use crate::ask::Asked;
use crate::rocfft::AskedPlans;

/// What a stock library asked for.
pub enum Answered {
    /// No library was asked.
    Nothing,
    /// libMIOpen's kernels, for problems.
    Problems(Box<Asked>),
    /// librocfft's kernels, for plans.
    Plans(Box<AskedPlans>),
}

impl Answered {
    /// What libMIOpen asked for, if it was asked.
    #[must_use]
    pub fn miopen(&self) -> Option<&Asked> {
        match self {
            Self::Problems(asked) => Some(asked),
            Self::Nothing | Self::Plans(_) => None,
        }
    }
}
