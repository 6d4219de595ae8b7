//! What copying rows into another kdb can fail with.

use std::path::PathBuf;

use gfxpack_model::KernelKey;

use crate::error::{ReadError, WriteError};

/// Why rows were not carried over into another kdb.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A file that is read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file that is written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A row whose key no kdb should have: MIOpen binds keys where it stores
    /// rows, and splices them in where it looks for them.
    #[error("failed to take over a kernel of kdb `{path}`")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with the key.
        source: WriteError,
    },
    /// An earlier split left parts that are none of this one's.
    #[error(
        "parts of an earlier split are in `{dir}` ({} in all): {}",
        .parts.len(), listed(.parts)
    )]
    OldParts {
        /// The directory of the parts.
        dir: PathBuf,
        /// What was there before, and is not of this split.
        parts: Vec<PathBuf>,
    },
    /// Two files have different code objects for one key.
    #[error("failed to merge kernel `{key}`: `{first}` and `{second}` differ in it")]
    Conflict {
        /// The key.
        key: Box<KernelKey>,
        /// A file that has it.
        first: PathBuf,
        /// Another one.
        second: PathBuf,
    },
}

impl CopyError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(error) => error.hint(),
            Self::Write(error) => error.hint(),
            Self::Key { .. } => {
                "`gfxpack kdb repair` writes the file without such rows, and lists them"
            }
            Self::OldParts { .. } => {
                "remove them: merging all files there would bring back their kernels"
            }
            Self::Conflict { .. } => {
                "--on-conflict first or newest says which to take; `gfxpack kdb diff` lists all"
            }
        }
    }
}

/// The first of some paths.
fn listed(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> =
        paths.iter().take(SHOWN).map(|path| format!("`{}`", path.display())).collect();
    if paths.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.join(", ")
}
