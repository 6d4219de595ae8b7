//! A kdb in another layout or storage.

use std::path::Path;

use crate::copy::cursor::Cursor;
use crate::copy::error::CopyError;
use crate::copy::transfer::{CopyOptions, RowInTransit, transfer};
use crate::write::sink::{Sink, Written};

/// Writes the rows of a kdb into a fresh one, in canonical order, with the
/// layout and storage asked for. Equal rows give equal bytes.
///
/// # Errors
/// [`CopyError`]; the destination is then as it was.
pub fn convert(input: &Path, out: &Path, options: &CopyOptions<'_>) -> Result<Written, CopyError> {
    let mut cursor = Cursor::open(input, options.max_object_bytes)?;
    let layout = options.layout.unwrap_or(cursor.reader().layout());
    let mut sink = Sink::create(out, layout)?;
    transfer(
        options,
        cursor.count(options)?,
        || {
            let Some((entry, note)) = cursor.next()? else { return Ok(None) };
            let stored = cursor.stored(&entry.key)?;
            Ok(Some(RowInTransit { path: input.to_owned(), key: entry.key, stored, note, rows: 1 }))
        },
        |key, encoded, note| Ok(sink.add(&key, &encoded, &note)?),
    )?;
    Ok(sink.finish()?)
}
