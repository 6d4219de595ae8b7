//! Errors of reading problems.

use gfxpack_harvest::log::{LogError, Seen};
use gfxpack_harvest::{HarvestError, Skipped};

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
    Database(#[from] gfxpack_model::Error),
    /// Lines that should be problems but are none.
    #[error("failed to read `{name}:{}`{}: {}", .first.first, and_more(*.more), .first.why)]
    Lines {
        /// The file as the user named it.
        name: String,
        /// The lines of the first kind.
        first: Skipped,
        /// The number of further lines in the file.
        more: u64,
    },
    /// A file without problems.
    #[error("failed to find a problem in `{name}`")]
    Nothing {
        /// The file as the user named it.
        name: String,
        /// The first record of a database that was skipped.
        passed_over: Option<(u64, KeyError)>,
        /// What the file has.
        seen: Seen,
    },
    /// More than [`MAX_PROBLEMS`].
    #[error("failed to take all problems of `{name}`: there are more than {}", MAX_PROBLEMS)]
    TooMany {
        /// The file with which there were too many.
        name: String,
    },
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
    /// The file is a database, and the line is no record.
    #[error("failed to read the record: it is damaged")]
    Damaged,
    /// Two records are in one line, and where the second begins can't be told.
    #[error("failed to read the second of two records in one line: they were torn")]
    Torn,
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
            Self::Database(error) => error.hint().unwrap_or_default().to_owned(),
            Self::Lines { first, .. } => first.hint.to_owned(),
            Self::Nothing { passed_over: Some((line, error)), .. } => {
                format!("the first record that was skipped is in line {line}: {error}")
            }
            Self::Nothing { seen: Seen::Nothing, .. } => {
                "the file is empty, or has nothing but NUL bytes: get it again, or look where its \
                 program writes"
                    .to_owned()
            }
            Self::Nothing { seen: Seen::Messages, .. } => {
                "MIOpen writes problems into its log where MIOPEN_ENABLE_LOGGING_CMD is 1"
                    .to_owned()
            }
            Self::Nothing { .. } => {
                "no line is of MIOpen: give the log of a run with MIOPEN_ENABLE_LOGGING_CMD=1, a \
                 list of lines as `MIOpenDriver conv -n 1 -c 64 …`, or a database"
                    .to_owned()
            }
            Self::TooMany { .. } => "ask for the files in several runs".to_owned(),
        }
    }
}

impl LineError {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Log(error) => error.hint(),
            Self::Problem(error) => error.hint(),
            Self::Other => "in a list, every line is a command, a comment (#) or empty",
            Self::Damaged | Self::Torn => "`gfxpack perfdb lint FILE` lists what is wrong with it",
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

impl From<ProblemsError> for gfxpack_model::Error {
    fn from(error: ProblemsError) -> Self {
        let (kind, hint) = (
            match &error {
                ProblemsError::File(gfxpack_harvest::HarvestError::Interrupted) => {
                    gfxpack_model::ErrorKind::Interrupted
                }
                _ => gfxpack_model::ErrorKind::Usage,
            },
            error.hint(),
        );
        Self::new(kind, &error, hint).caused_by(error)
    }
}
