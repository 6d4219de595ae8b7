//! Putting databases together, as MIOpen sees a user's over the system's.

use std::path::{Path, PathBuf};

use crate::database::{Database, Overlaid};
use crate::error::{ReadError, WriteError};
use crate::name::{DatabaseName, Kind, Storage};
use crate::record::Fault;
use crate::sqlite::SqliteDatabase;

/// Why databases could not be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("failed to merge databases: none is given")]
    Nothing,
    /// A name that MIOpen gives no database.
    #[error("failed to tell what `{0}` is by its name")]
    Name(PathBuf),
    /// Two databases that hold different things.
    #[error("failed to merge `{first}` and `{second}`: {what}")]
    Unlike {
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// How they differ.
        what: &'static str,
    },
    /// A record is not whole, and would be lost in part.
    #[error("failed to merge `{path}`: line {line}: {fault}")]
    Fault {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong there.
        fault: Fault,
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
            Self::Unlike { .. } => {
                "merge databases of one kind and one device; --any-device merges those of several"
            }
            Self::Fault { .. } => {
                "correct the line, or leave out what MIOpen can't read with --keep-going"
            }
            Self::Read(error) => return error.hint(),
            Self::Write(error) => return error.hint(),
        };
        fixed.to_owned()
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// What the databases hold.
    pub kind: Kind,
    /// Records in the result.
    pub records: u64,
    /// What all databases but the first did to those before them.
    pub overlaid: Overlaid,
    /// Lines, with their files, of which something was left out.
    pub faults: u64,
}

/// Merges databases of one kind into `output`, each laid over those before it:
/// the system's first, then users'. The result is in order, so that the same
/// records are the same bytes.
///
/// `see` is shown each fault by which something of a line is lost, with the
/// file and the line's number; where it returns false, the merge ends with
/// [`MergeError::Fault`]. Databases of different devices are merged only with
/// `any_device`.
///
/// # Errors
/// [`MergeError`]. `output` is written whole or not at all; it may be one of
/// the inputs.
pub fn merge(
    inputs: &[impl AsRef<Path>],
    output: &Path,
    any_device: bool,
    mut see: impl FnMut(&Path, u64, &Fault) -> bool,
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
        if other.target != name.target && !any_device {
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
    kind: Kind,
    output: &Path,
    see: &mut impl FnMut(&Path, u64, &Fault) -> bool,
) -> Result<Merged, MergeError> {
    let mut merged = Database::new(kind);
    let (mut overlaid, mut faults) = (Overlaid::default(), 0);
    for (index, (path, _)) in inputs.iter().enumerate() {
        let mut fatal = None;
        let over = Database::read(path, kind, |line, fault| {
            // A carriage return is all that is lost of its line.
            if !fault.loses() || *fault == Fault::CarriageReturn {
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
    let records = merged.len() as u64;
    Ok(Merged { kind: Kind::Perf, records, overlaid, faults: merged.orphans() })
}
