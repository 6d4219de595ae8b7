//! Writes a file: every row in canonical order, completely or not at all.

use std::collections::HashMap;
use std::path::Path;

use gfxpack_model::Digest;
use gfxpack_sqlite::{NewFile, NewFileError};
use rusqlite::Connection;

use crate::file::error::WriteError;
use crate::file::layout::Layout;
use crate::file::row::check_row;
use crate::key::CacheKey;

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
    layout: Layout,
    mut code: impl FnMut(usize) -> Result<Vec<u8>, E>,
) -> Result<(), WriteError>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(WriteError::Order(Box::new(pair[1].clone())));
    }
    let io = |NewFileError { path, source, .. }| WriteError::Io { path, source };
    let sqlite = |source| WriteError::Sqlite { path: path.to_owned(), source };
    let file = NewFile::beside(path).map_err(io)?;
    let connection = file.connect(layout.page_size()).map_err(sqlite)?;
    for statement in layout.statements() {
        connection.execute_batch(statement).map_err(sqlite)?;
    }
    let mut objects = HashMap::new();
    for (index, key) in keys.iter().enumerate() {
        let boxed = || Box::new(key.clone());
        let code = code(index)
            .map_err(|source| WriteError::Code { key: boxed(), source: source.into() })?;
        check_row(key, &code).map_err(|source| WriteError::Row { key: boxed(), source })?;
        insert(&connection, layout, &mut objects, key, &code).map_err(sqlite)?;
    }
    connection.execute_batch("COMMIT").map_err(sqlite)?;
    connection.flush_prepared_statement_cache();
    connection.close().map_err(|(_, source)| sqlite(source))?;
    file.persist().map(drop).map_err(io)
}

fn insert(
    connection: &Connection,
    layout: Layout,
    objects: &mut HashMap<Digest, i64>,
    key: &CacheKey,
    code: &[u8],
) -> Result<(), rusqlite::Error> {
    let CacheKey { kernel_name, arch, hip_version, generator_sum } = key;
    if layout == Layout::Plain {
        let mut insert =
            connection.prepare_cached("INSERT INTO cache_v1 VALUES (?, ?, ?, ?, ?, 0)")?;
        insert.execute((kernel_name, arch, hip_version, generator_sum, code))?;
        return Ok(());
    }
    let next = objects.len() as i64 + 1;
    let object = *objects.entry(Digest::of(code)).or_insert(next);
    if object == next {
        let mut insert = connection.prepare_cached("INSERT INTO rocfft_objects VALUES (?, ?)")?;
        insert.execute((object, code))?;
    }
    let mut insert = connection.prepare_cached("INSERT INTO rocfft_keys VALUES (?, ?, ?, ?, ?)")?;
    insert.execute((kernel_name, arch, hip_version, generator_sum, object))?;
    Ok(())
}
