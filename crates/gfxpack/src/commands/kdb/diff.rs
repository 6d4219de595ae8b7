//! `kdb diff`: shows the differences between two kdbs.

use std::path::Path;

use gfxpack_kdb::{Change, ReadError, RowInfo};
use serde_json::{Value, json};

use super::as_words;
use crate::fail::{Error, ErrorKind, Result};
use crate::output::{Output, counted, display, if_any, message};

/// Prints every difference.
pub(super) fn run(old: &Path, new: &Path, exit_code: bool, output: &Output) -> Result {
    let found = gfxpack_kdb::diff(old, new, |change| {
        let (sign, kind, old, new) = match &change {
            Change::Added(new) => ('+', "added", None, Some(new)),
            Change::Removed(old) => ('-', "removed", Some(old), None),
            Change::Changed { old, new } => ('~', "changed", Some(old), Some(new)),
            Change::Recoded { old, new } => ('=', "recoded", Some(old), Some(new)),
            _ => return Ok::<(), ReadError>(()),
        };
        let Some(entry) = new.or(old) else { return Ok(()) };
        message!(output, "difference", {
            "change": kind, "key": entry.key, "old": old.map(side), "new": new.map(side),
        });
        // Different bytes of the same code object only matter to machines.
        if sign != '=' || output.verbose {
            output.text(&format!("{sign} {}", as_words(&entry.key)));
        }
        Ok(())
    })?;
    message!(output, "diff", {
        "old": display(old), "new": display(new), "same": found.same, "recoded": found.recoded,
        "added": found.added, "removed": found.removed, "changed": found.changed,
    });
    let recoded = if_any(found.recoded, |count| format!(" ({count} stored otherwise)"));
    output.info(&format!(
        "{} added, {} removed, {} changed, {} the same{recoded}",
        found.added, found.removed, found.changed, found.same
    ));
    if exit_code && !found.is_none() {
        let differences = counted(found.added + found.removed + found.changed, "difference");
        let message = format!("the kdbs differ: {differences}");
        return Err(Error::new(ErrorKind::Unsound, message, "each is listed above"));
    }
    Ok(())
}

fn side(entry: &RowInfo) -> Value {
    json!({
        "md5": entry.hash, "stored_bytes": entry.stored_bytes,
        "object_bytes": entry.object_bytes, "compressed": entry.compressed,
    })
}
