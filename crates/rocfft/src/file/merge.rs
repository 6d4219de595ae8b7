//! The union of several files.

use std::path::{Path, PathBuf};

use crate::file::error::{ReadError, WriteError};
use crate::file::read::Reader;
use crate::file::write::write;
use crate::key::CacheKey;

/// Writes the rows of all `inputs` to `out`, equal ones once. All keys are in memory, and one or
/// two code objects at a time. The result does not depend on the order of the inputs.
///
/// # Errors
/// [`WriteError`], also if files have different code objects for one key; the destination is then
/// unchanged.
pub fn merge(inputs: &[PathBuf], out: &Path) -> Result<(), WriteError> {
    let readers: Vec<_> = inputs.iter().map(Reader::open).collect::<Result<_, _>>()?;
    let mut rows: Vec<(CacheKey, usize)> = Vec::new();
    for (index, reader) in readers.iter().enumerate() {
        reader.for_each_key(|key| {
            rows.push((key, index));
            Ok::<_, ReadError>(())
        })?;
    }
    rows.sort();
    let code = |(key, index): &(CacheKey, usize)| readers[*index].get(key);
    for pair in rows.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        if code(&pair[0])? != code(&pair[1])? {
            return Err(WriteError::Conflict {
                key: Box::new(pair[0].0.clone()),
                first: inputs[pair[0].1].clone(),
                second: inputs[pair[1].1].clone(),
            });
        }
    }
    rows.dedup_by(|a, b| a.0 == b.0);
    let (keys, files): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let code = |index: usize| {
        let found = readers[files[index]].get(&keys[index])?;
        Ok::<_, ReadError>(found.unwrap_or_default())
    };
    write(out, &keys, code)
}
