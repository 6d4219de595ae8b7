//! Lists the files in the given paths.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_model::{Error, Result};
use walkdir::WalkDir;

/// One input to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The standard input.
    Stdin,
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// Its size in bytes, if known.
        bytes: u64,
        /// Whether the user gave this path, and not a directory above it.
        named: bool,
    },
}

impl Input {
    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "-".to_owned(),
            Self::File { path, .. } => path.display().to_string(),
        }
    }

    /// Size in bytes, if known.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Stdin => 0,
            Self::File { bytes, .. } => *bytes,
        }
    }
}

/// The files in the given paths; `-` is the standard input. Directories are
/// searched recursively, sorted by name; links in them are not followed, and
/// SQLite's companion files are left out.
///
/// # Errors
/// If one does not exist or can't be read, or the standard input is given twice.
pub fn list(paths: &[PathBuf]) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            if inputs.contains(&Input::Stdin) {
                let hint = "name `-` once: the standard input can only be read once";
                return Err(Error::usage("`-` is given twice", hint));
            }
            inputs.push(Input::Stdin);
            continue;
        }
        let read = |source| unreadable(&path.display().to_string(), source);
        let metadata = std::fs::metadata(path).map_err(read)?;
        if metadata.is_dir() {
            for entry in WalkDir::new(path).sort_by_file_name() {
                let entry = entry.map_err(|error| read(error.into()))?;
                if entry.file_type().is_file() && !is_beside_a_database(entry.path()) {
                    let metadata = entry.metadata().map_err(|error| read(error.into()))?;
                    let (path, bytes) = (entry.into_path(), metadata.len());
                    inputs.push(Input::File { path, bytes, named: false });
                }
            }
            continue;
        }
        // A pipe has no size, but can be read.
        inputs.push(Input::File { path: path.clone(), bytes: metadata.len(), named: true });
    }
    Ok(inputs)
}

/// The error for a file or directory that can't be read; `name` is what the user gave.
pub(crate) fn unreadable(name: &str, source: io::Error) -> Error {
    let hint = match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "check the permissions of the file and of the directories above it"
        }
        _ => "check the path",
    };
    Error::usage(format!("failed to read `{name}`"), hint).caused_by(source)
}

/// Source: SQLite, "Temporary Files Used By SQLite".
fn is_beside_a_database(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    [&b"-wal"[..], b"-shm", b"-journal"].iter().any(|end| name.ends_with(end))
}
