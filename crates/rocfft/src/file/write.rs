//! Writes a file: every row in canonical order, completely or not at all.

use std::path::Path;

use gfxpack_sqlite::NewFile;

use crate::file::error::WriteError;
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

/// Writes a file of `keys`, which must be in strictly ascending order. `code` returns the code
/// object of each by its index, in order; each is checked by [`check_row`] before it is written.
///
/// Equal keys and code objects give equal bytes; timestamps are 0. The file appears under `path`
/// only when it is complete and on disk. It replaces an older one and keeps its permissions.
///
/// # Errors
/// [`WriteError`]; the destination is then unchanged, and no temporary file remains.
pub fn write<E>(
    path: &Path,
    keys: &[CacheKey],
    mut code: impl FnMut(usize) -> Result<Vec<u8>, E>,
) -> Result<(), WriteError>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(WriteError::Order(Box::new(pair[1].clone())));
    }
    let io = |(_, source)| WriteError::Io { path: path.to_owned(), source };
    let sqlite = |source| WriteError::Sqlite { path: path.to_owned(), source };
    let file = NewFile::beside(path).map_err(io)?;
    let connection = file.connect().map_err(sqlite)?;
    connection.execute_batch(CREATE_TABLE).map_err(sqlite)?;
    for (index, key) in keys.iter().enumerate() {
        let boxed = || Box::new(key.clone());
        let code = code(index)
            .map_err(|source| WriteError::Code { key: boxed(), source: source.into() })?;
        check_row(key, &code).map_err(|source| WriteError::Row { key: boxed(), source })?;
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
