//! Merges databases, as MIOpen merges a user's into the system's.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_sqlite::NewFileError;

use crate::database::{Database, Overlaid};
use crate::error::ReadError;
use crate::name::{DatabaseKind, DatabaseName, Storage};
use crate::record::RecordFault;

/// Why databases could not be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("failed to merge databases: none is given")]
    Nothing,
    /// The file's name is not one of MIOpen's text databases.
    #[error("failed to tell by its name which text database `{0}` is")]
    Name(PathBuf),
    /// The two databases can't be merged.
    #[error("failed to merge `{first}` and `{second}`: {what}")]
    Unlike {
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// How they differ.
        what: &'static str,
    },
    /// A record is damaged, and would be partly lost.
    #[error("failed to merge `{path}`: line {line}: {fault}")]
    Fault {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with the line.
        fault: RecordFault,
    },
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The result could not be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl MergeError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let fixed = match self {
            Self::Nothing => "name the system's database first, then the users'",
            Self::Name(_) => {
                "name it as MIOpen does, as gfx906_60.db.txt, gfx90a68.HIP.fdb.txt or \
                 gfx906_60.HIP.3_3_0_.ufdb.txt"
            }
            Self::Unlike { .. } => "merge databases of one kind and one device",
            Self::Fault { .. } => {
                "correct the line, or leave out what MIOpen can't read with --keep-going"
            }
            Self::Read(error) => return error.hint(),
            Self::Write { .. } => {
                "check that the directory is there, and that there is room on that disk"
            }
        };
        fixed.to_owned()
    }
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// The kind of the databases.
    pub kind: DatabaseKind,
    /// Number of records in the result.
    pub records: u64,
    /// Counts for all databases but the first.
    pub overlaid: Overlaid,
    /// Number of lines of which a part was left out.
    pub faults: u64,
}

/// Merges databases of one kind into `output`: the system's first, then users'.
/// Each takes precedence over those before it. The result is sorted, so equal
/// records give equal bytes.
///
/// `see` is called for each fault that loses a part of a line, with the file
/// and the line's number. If it returns false, the merge ends with
/// [`MergeError::Fault`].
///
/// # Errors
/// [`MergeError`]. `output` is written completely or not at all; it may be one
/// of the inputs.
pub fn merge(
    inputs: &[impl AsRef<Path>],
    output: &Path,
    mut see: impl FnMut(&Path, u64, &RecordFault) -> bool,
) -> Result<Merged, MergeError> {
    let mut names = Vec::new();
    for input in inputs {
        let input = input.as_ref();
        let name = DatabaseName::from_path(input).filter(|name| name.storage == Storage::Text);
        names.push((input, name.ok_or_else(|| MergeError::Name(input.to_owned()))?));
    }
    let Some(((first, name), over)) = names.split_first() else { return Err(MergeError::Nothing) };
    for (input, other) in over {
        let unlike = |what| MergeError::Unlike {
            first: (*first).to_owned(),
            second: (*input).to_owned(),
            what,
        };
        if other.kind != name.kind || other.prefix != name.prefix {
            return Err(unlike("they hold different things"));
        }
        if other.target != name.target {
            return Err(unlike("they are for different devices"));
        }
    }
    let kind = name.kind;
    let mut merged = Database::new(kind);
    let (mut overlaid, mut faults) = (Overlaid::default(), 0);
    for (index, (path, _)) in names.iter().enumerate() {
        let mut fatal = None;
        let over = Database::read(path, kind, |line, fault| {
            // Only the carriage return of such a line is lost.
            if !fault.loses() || *fault == RecordFault::CarriageReturn {
                return;
            }
            faults += 1;
            if !see(path, line, fault) && fatal.is_none() {
                fatal = Some(MergeError::Fault {
                    path: (*path).to_owned(),
                    line,
                    fault: fault.clone(),
                });
            }
        })?;
        if let Some(fatal) = fatal {
            return Err(fatal);
        }
        let done = merged.lay_all_over(over);
        if index > 0 {
            overlaid.add(done);
        }
    }
    let failed =
        |NewFileError { path, source, .. }: NewFileError| MergeError::Write { path, source };
    merged.save(output).map_err(failed)?;
    Ok(Merged { kind, records: merged.count(), overlaid, faults })
}

impl From<MergeError> for gfxpack_model::Error {
    fn from(error: MergeError) -> Self {
        let (kind, hint) = (
            match error {
                MergeError::Write { .. } => gfxpack_model::ErrorKind::Internal,
                _ => gfxpack_model::ErrorKind::Usage,
            },
            error.hint(),
        );
        Self::new(kind, &error, hint).caused_by(error)
    }
}
