//! Building a file: every row in canonical order, whole or not at all.

use std::collections::HashMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use gfxpack_model::Digest;
use rusqlite::{Connection, OpenFlags};

use crate::file::error::WriteError;
use crate::file::layout::Layout;
use crate::file::row::check_row;
use crate::key::CacheKey;

/// Writes a file of `keys`, which must be in strictly ascending order. `code`
/// delivers the code object of each by its index, in order; every one is
/// checked by [`check_row`] before it is written.
///
/// Equal keys and code objects give equal bytes; timestamps are 0. The file
/// appears under `path` only when it is whole and on disk; an older one is
/// replaced.
///
/// # Errors
/// [`WriteError`]; the destination is then as it was, with nothing left beside
/// it.
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
    let io = |source| WriteError::Io { path: path.to_owned(), source };
    let sqlite = |source| WriteError::Sqlite { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(io)?;
    let dir = absolute.parent().unwrap_or(&absolute);
    let file = tempfile::Builder::new().prefix(".rocfft-").suffix(".tmp").tempfile_in(dir);
    let file = file.map_err(io)?;
    let connection = connect(file.path(), layout).map_err(sqlite)?;
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
    file.as_file().set_permissions(Permissions::from_mode(0o644)).map_err(io)?;
    file.as_file().sync_all().map_err(io)?;
    file.persist(&absolute).map(drop).map_err(|error| io(error.error))
}

/// A connection with a transaction open and every setting that shows in the
/// file fixed. No journal: a file that fails is thrown away.
fn connect(path: &Path, layout: Layout) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(&format!(
        "PRAGMA page_size = {};
         PRAGMA encoding = 'UTF-8';
         PRAGMA auto_vacuum = NONE;
         PRAGMA secure_delete = ON;
         PRAGMA journal_mode = OFF;
         PRAGMA synchronous = OFF;
         PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA cache_size = -2048;
         PRAGMA mmap_size = 0;
         BEGIN EXCLUSIVE;",
        layout.page_size()
    ))?;
    for statement in layout.statements() {
        connection.execute_batch(statement)?;
    }
    Ok(connection)
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
