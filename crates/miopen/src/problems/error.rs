//! Errors of reading problems.

use gfxpack_harvest::HarvestError;
use gfxpack_harvest::log::LogError;
use gfxpack_tuning::ReadError;

use crate::problem::ProblemError;

/// The most distinct problems: MIOpen's databases of all devices together have about 700,000.
pub const MAX_PROBLEMS: usize = 1 << 21;

/// Why problems cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemsError {
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] HarvestError),
    /// A database that cannot be read.
    #[error(transparent)]
    Database(#[from] ReadError),
    /// Lines that should be problems but are none.
    #[error(
        "failed to read `{}:{}`{}",
        .first.name, .first.line, and_more(*.more)
    )]
    Lines {
        /// The first such line.
        first: BadLine,
        /// The number of further ones in the file.
        more: u64,
        /// The error of the first.
        source: LineError,
    },
    /// A file without problems.
    #[error("failed to find a problem in `{name}`")]
    Nothing {
        /// The file as the user named it.
        name: String,
        /// The first record of a database that was skipped.
        passed_over: Option<(u64, KeyError)>,
    },
    /// More than [`MAX_PROBLEMS`].
    #[error("failed to take all problems of `{name}`: there are more than {}", MAX_PROBLEMS)]
    TooMany {
        /// The file with which there were too many.
        name: String,
    },
}

/// The position of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The file as the user named it.
    pub name: String,
    /// From 1.
    pub line: u64,
}

/// Why a line is no problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The command can't be found in the line.
    #[error(transparent)]
    Log(LogError),
    /// The command is no problem.
    #[error(transparent)]
    Problem(ProblemError),
    /// The file is a list, and the line is neither a command nor a comment.
    #[error("failed to find a command of MIOpenDriver in the line")]
    Other,
}

/// Why a database's record gives no problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Another form than that of a convolution's key: batch normalization's, a
    /// fusion's, or one of another version of MIOpen.
    #[error("failed to read the key: it is no convolution's")]
    Form,
    /// Tensors that are not supported: other types, or vectors.
    #[error("failed to read the key: tensors of `{0}` are not supported")]
    Unsupported(String),
    /// No convolution has these sizes.
    #[error(transparent)]
    Problem(ProblemError),
    /// The sizes of input and output contradict each other.
    #[error("failed to accept the key: no convolution has both its input and its output")]
    Contradiction,
    /// A key of a performance database allows too many inputs.
    #[error("failed to accept the key: its stride leaves {0} inputs possible")]
    TooManyInputs(u64),
}

impl ProblemsError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint().to_owned(),
            Self::Database(error) => error.hint(),
            Self::Lines { source, .. } => source.hint().to_owned(),
            Self::Nothing { passed_over: Some((line, error)), .. } => {
                format!("the first record that was skipped is in line {line}: {error}")
            }
            Self::Nothing { .. } => {
                "MIOpen writes problems into its log where MIOPEN_ENABLE_LOGGING_CMD is 1; lists \
                 have lines as `MIOpenDriver conv -n 1 -c 64 …`"
                    .to_owned()
            }
            Self::TooMany { .. } => "ask for the files in several runs".to_owned(),
        }
    }
}

impl LineError {
    fn hint(&self) -> &'static str {
        match self {
            Self::Log(error) => error.hint(),
            Self::Problem(error) => error.hint(),
            Self::Other => "in a list, every line is a command, a comment (#) or empty",
        }
    }
}

fn and_more(lines: u64) -> String {
    match lines {
        0 => String::new(),
        1 => " and 1 further line".to_owned(),
        lines => format!(" and {lines} further lines"),
    }
}
