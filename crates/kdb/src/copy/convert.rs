//! Copies a kdb into another layout or form of storage.

use std::path::Path;

use crate::copy::cursor::Cursor;
use crate::copy::error::CopyError;
use crate::copy::transfer::{CopyOptions, transfer};
use crate::write::sink::{Sink, Written};

/// Writes the rows of a kdb into a new one, in canonical order, with the layout
/// and storage of `options`. Equal rows give equal bytes.
///
/// # Errors
/// [`CopyError`]; the destination is then unchanged.
pub fn convert(input: &Path, out: &Path, options: &CopyOptions<'_>) -> Result<Written, CopyError> {
    let mut cursor = Cursor::open(input, options.max_object_bytes)?;
    let layout = options.layout.unwrap_or(cursor.reader().layout());
    let mut sink = Sink::create(out, layout)?;
    transfer(
        options,
        cursor.count(options)?,
        || cursor.next_in_transit(),
        |key, encoded, note| Ok(sink.add(&key, &encoded, &note)?),
    )?;
    Ok(sink.finish()?)
}
