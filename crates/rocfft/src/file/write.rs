//! Writes a file, or the union of several: every row in canonical order, completely or not at all.

use std::path::{Path, PathBuf};

use gfxpack_model::{Error, Result};
use gfxpack_sqlite::{NewFile, NewFileError};

use crate::file::read::Reader;
use crate::file::row::check_row;
use crate::key::CacheKey;

/// rocFFT's table. SQLite stores the statement's text, so its blanks are part of the format.
///
/// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `RTCCache::connect_db`.
pub(crate) const CREATE_TABLE: &str = "CREATE TABLE cache_v1 (  \
    kernel_name TEXT NOT NULL,  \
    arch TEXT NOT NULL,  \
    hip_version INTEGER NOT NULL,  \
    generator_sum BLOB NOT NULL,  \
    code BLOB NOT NULL,  \
    timestamp INTEGER NOT NULL,  \
    PRIMARY KEY (      kernel_name, arch, hip_version, generator_sum      ))";

/// What to do about a kernel that can't be in a file.
const BUILD_AGAIN: &str = "build the kernel again: rocFFT fails on a row that the driver refuses";

/// Writes a file of `keys`, which must be in strictly ascending order. `code` returns the code
/// object of each by its index, in order; each is checked by [`check_row`] before it is written.
///
/// Equal keys and code objects give equal bytes; timestamps are 0. The file appears under `path`
/// only when it is complete and on disk. It replaces an older one and keeps its permissions.
///
/// # Errors
/// Those of `code`, or if the file can't be written. The destination is then unchanged, and no
/// temporary file remains.
pub fn write(
    path: &Path,
    keys: &[CacheKey],
    mut code: impl FnMut(usize) -> Result<Vec<u8>>,
) -> Result {
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(Error::internal(
            format!("failed to write kernel `{}`: its key is not above the one before it", pair[1]),
            "sort the keys, and name every one once",
        ));
    }
    let failed = || {
        let hint = "check that the directory exists, may be written, and has room for the file";
        Error::internal(format!("failed to write `{}`", path.display()), hint)
    };
    let io = |(_, source): NewFileError| failed().caused_by(source);
    let sqlite = |source: rusqlite::Error| failed().caused_by(source);
    let file = NewFile::beside(path).map_err(io)?;
    let connection = file.connect().map_err(sqlite)?;
    connection.execute_batch(CREATE_TABLE).map_err(sqlite)?;
    for (index, key) in keys.iter().enumerate() {
        let code = code(index)?;
        check_row(key, &code).map_err(|source| {
            Error::internal(format!("failed to accept kernel `{key}`"), BUILD_AGAIN)
                .caused_by(source)
        })?;
        let CacheKey { kernel_name, arch, hip_version, generator_sum } = key;
        connection
            .prepare_cached("INSERT INTO cache_v1 VALUES (?, ?, ?, ?, ?, 0)")
            .and_then(|mut insert| {
                insert.execute((kernel_name, arch, hip_version, generator_sum, &code))
            })
            .map_err(sqlite)?;
    }
    connection.execute_batch("COMMIT").map_err(sqlite)?;
    connection.flush_prepared_statement_cache();
    connection.close().map_err(|(_, source)| sqlite(source))?;
    file.persist().map(drop).map_err(io)
}

/// Writes the rows of all `inputs` to `out`, equal ones once. All keys are in memory, and one or
/// two code objects at a time. The result does not depend on the order of the inputs.
///
/// # Errors
/// If a file can't be read or written, or files have different code objects for one key; the
/// destination is then unchanged.
pub fn merge(inputs: &[PathBuf], out: &Path) -> Result {
    let readers: Vec<_> = inputs.iter().map(Reader::open).collect::<Result<_, _>>()?;
    let mut rows: Vec<(CacheKey, usize)> = Vec::new();
    for (index, reader) in readers.iter().enumerate() {
        reader.for_each_key(|key| {
            rows.push((key, index));
            Ok(())
        })?;
    }
    rows.sort();
    let code = |(key, index): &(CacheKey, usize)| readers[*index].get(key);
    for pair in rows.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        if code(&pair[0])? != code(&pair[1])? {
            let [(key, first), (_, second)] = pair else { unreachable!("windows of two") };
            let (first, second) = (inputs[*first].display(), inputs[*second].display());
            return Err(Error::internal(
                format!("`{first}` and `{second}` differ in kernel `{key}`"),
                "build both with the same toolchain, or leave one of them out",
            ));
        }
    }
    rows.dedup_by(|a, b| a.0 == b.0);
    let (keys, files): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let code = |index: usize| {
        let found = readers[files[index]].get(&keys[index]).map_err(|source| {
            let message = format!("failed to read the code object of kernel `{}`", keys[index]);
            Error::internal(message, BUILD_AGAIN).caused_by(source)
        })?;
        Ok(found.unwrap_or_default())
    };
    write(out, &keys, code)
}
