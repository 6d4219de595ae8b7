//! Merges databases, as MIOpen merges a user's into the system's.

use std::path::{Path, PathBuf};

use crate::database::{Database, Overlaid};
use crate::error::{ReadError, WriteError};
use crate::name::{DatabaseKind, DatabaseName, Storage};
use crate::record::RecordFault;
use crate::sqlite::SqliteDatabase;

/// Why databases could not be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("failed to merge databases: none is given")]
    Nothing,
    /// The file's name is not one of MIOpen's databases.
    #[error("failed to tell what `{0}` is by its name")]
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
    #[error(transparent)]
    Write(#[from] WriteError),
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
            Self::Write(error) => return error.hint(),
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
        let name =
            DatabaseName::from_path(input).ok_or_else(|| MergeError::Name(input.to_owned()))?;
        names.push((input, name));
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
        if other.storage != name.storage {
            return Err(unlike("one is SQLite and the other is text"));
        }
        if other.target != name.target {
            return Err(unlike("they are for different devices"));
        }
    }
    match name.storage {
        Storage::Text => text(&names, name.kind, output, &mut see),
        Storage::Sqlite => sqlite(first, over, output),
    }
}

fn text(
    inputs: &[(&Path, DatabaseName)],
    kind: DatabaseKind,
    output: &Path,
    see: &mut impl FnMut(&Path, u64, &RecordFault) -> bool,
) -> Result<Merged, MergeError> {
    let mut merged = Database::new(kind);
    let (mut overlaid, mut faults) = (Overlaid::default(), 0);
    for (index, (path, _)) in inputs.iter().enumerate() {
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
    merged.save(output)?;
    Ok(Merged { kind, records: merged.count(), overlaid, faults })
}

fn sqlite(
    first: &Path,
    over: &[(&Path, DatabaseName)],
    output: &Path,
) -> Result<Merged, MergeError> {
    let mut merged = SqliteDatabase::read(first)?;
    let mut overlaid = Overlaid::default();
    for (path, _) in over {
        let done = merged.lay_all_over(SqliteDatabase::read(path)?);
        overlaid.add(done.ok_or_else(|| MergeError::Unlike {
            first: first.to_owned(),
            second: (*path).to_owned(),
            what: "their problems have different columns",
        })?);
    }
    merged.save(output)?;
    let records = merged.problems.len() as u64;
    Ok(Merged { kind: DatabaseKind::Perf, records, overlaid, faults: merged.orphans })
}
