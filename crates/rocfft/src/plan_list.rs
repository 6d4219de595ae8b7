//! Lists of plans.

use std::collections::HashSet;
use std::io::{self, BufRead, Read as _};

use crate::plan::{FftPlan, PlanError};

/// Longest line, in bytes.
const MAX_LINE: u64 = 4096;
/// Most plans that are taken, each once.
pub const MAX_PLANS: usize = 1 << 20;

/// Why a list of plans can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlansError {
    /// The file can't be read.
    #[error("failed to read `{name}`")]
    Io {
        /// The file, as the user named it.
        name: String,
        /// What the file system says.
        source: io::Error,
    },
    /// A line is neither a plan nor a comment nor empty.
    #[error("failed to read `{name}:{line}`")]
    Line {
        /// The file.
        name: String,
        /// From 1.
        line: u64,
        /// What is wrong with it.
        source: PlanError,
    },
    /// A line that is too long, or no text.
    #[error("failed to read `{name}:{line}`: it is no text, or has more than {MAX_LINE} bytes")]
    NoText {
        /// The file.
        name: String,
        /// From 1.
        line: u64,
    },
    /// There is no plan in it.
    #[error("failed to find a plan in `{name}`")]
    Nothing {
        /// The file.
        name: String,
    },
    /// More than [`MAX_PLANS`].
    #[error("failed to take all plans of `{name}`: there are more than {MAX_PLANS}")]
    TooMany {
        /// The file.
        name: String,
    },
}

impl PlansError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path and its permissions",
            Self::Line { source, .. } => source.hint(),
            Self::NoText { .. } | Self::Nothing { .. } => {
                "every line is a plan, `c2c sp ip 1024x1024 batch 8`, a comment (#) or empty"
            }
            Self::TooMany { .. } => "ask for the plans in several runs",
        }
    }
}

/// The plans of a list, each once, in the order of their first lines. `name` is
/// what errors call the file.
///
/// # Errors
/// [`PlansError`], for the first line that is wrong.
pub fn read_plans(name: &str, mut from: impl BufRead) -> Result<Vec<FftPlan>, PlansError> {
    let own = || name.to_owned();
    let (mut seen, mut plans) = (HashSet::new(), Vec::new());
    let (mut bytes, mut line) = (Vec::new(), 0);
    loop {
        bytes.clear();
        let mut limited = from.by_ref().take(MAX_LINE + 1);
        let read = limited.read_until(b'\n', &mut bytes);
        if read.map_err(|source| PlansError::Io { name: own(), source })? == 0 {
            break;
        }
        line += 1;
        let text = str::from_utf8(&bytes).ok().filter(|_| bytes.len() as u64 <= MAX_LINE);
        let text = text.ok_or_else(|| PlansError::NoText { name: own(), line })?;
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let plan: FftPlan =
            text.parse().map_err(|source| PlansError::Line { name: own(), line, source })?;
        if seen.insert(plan.clone()) {
            plans.push(plan);
        }
        if plans.len() > MAX_PLANS {
            return Err(PlansError::TooMany { name: own() });
        }
    }
    if plans.is_empty() { Err(PlansError::Nothing { name: own() }) } else { Ok(plans) }
}
