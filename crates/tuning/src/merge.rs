//! Merges databases, as MIOpen merges a user's into the system's.

use std::path::Path;

use gfxpack_model::{Error, Result};

use crate::database::{Database, Overlaid};
use crate::name::{DatabaseKind, DatabaseName, Storage};
use crate::record::RecordFault;

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
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
/// and the line's number. If it returns false, the merge fails.
///
/// # Errors
/// If files are not alike, can't be read or written. `output` is written completely or not at all; it may be one
/// of the inputs.
pub fn merge(
    inputs: &[impl AsRef<Path>],
    output: &Path,
    mut see: impl FnMut(&Path, u64, &RecordFault) -> bool,
) -> Result<Merged> {
    let mut names = Vec::new();
    for input in inputs {
        let input = input.as_ref();
        let name = DatabaseName::of_file(input)?;
        if name.storage != Storage::Text {
            return Err(DatabaseName::unknown(input));
        }
        names.push((input, name));
    }
    let Some(((first, name), over)) = names.split_first() else {
        let hint = "name the system's database first, then the users'";
        return Err(Error::usage("failed to merge databases: none is given", hint));
    };
    for (input, other) in over {
        let unlike = |what| {
            let (first, second) = (first.display(), input.display());
            let message = format!("failed to merge `{first}` and `{second}`: {what}");
            Error::usage(message, "merge databases of one kind and one device")
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
                let path = path.display();
                fatal = Some(Error::usage(
                    format!("failed to merge `{path}`: line {line}: {fault}"),
                    "correct the line, or leave out what MIOpen can't read with --keep-going",
                ));
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
