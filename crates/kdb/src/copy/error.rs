//! Errors of copying rows into another kdb.

use std::path::PathBuf;

use gfxpack_model::KernelKey;

use crate::error::{ReadError, WriteError};

/// Why rows were not copied into another kdb.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Reading a file failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Writing a file failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A key that no kdb should have. MIOpen binds keys when it stores rows,
    /// but splices them into the SQL when it looks them up.
    #[error("failed to take over a kernel of kdb `{path}`")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with the key.
        source: WriteError,
    },
    /// An earlier split left parts that this split did not write.
    #[error(
        "parts of an earlier split are in `{dir}` ({} in all): {}",
        .parts.len(), listed(.parts)
    )]
    OldParts {
        /// The directory of the parts.
        dir: PathBuf,
        /// The parts left by the earlier split.
        parts: Vec<PathBuf>,
    },
    /// Two files have different code objects for one key.
    #[error("failed to merge kernel `{key}`: `{first}` and `{second}` differ in it")]
    Conflict {
        /// The key.
        key: Box<KernelKey>,
        /// A file with this key.
        first: PathBuf,
        /// Another file with this key.
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

/// The first few paths, as text.
fn listed(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> =
        paths.iter().take(SHOWN).map(|path| format!("`{}`", path.display())).collect();
    if paths.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.join(", ")
}
