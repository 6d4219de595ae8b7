//! SQLite's functions, as libraries import them.
//!
//! Source: SQLite, "C-language Interface Specification".

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::slice;

use super::query::Column;
use super::real::{Callback, RealSqlite};
use super::statement::{Connection, DONE, NONE, OK, Owner, Statement, into_raw};
use super::{KernelDatabases, REAL, mode};
use crate::record::{Event, record};

const CANTOPEN: c_int = 14;
const ABORT: c_int = 4;

/// # Safety
/// `db` must be a connection of `sqlite3_open_v2` that is not closed.
unsafe fn connection<'a>(db: *mut c_void) -> &'a Connection {
    // SAFETY: by contract.
    unsafe { &*db.cast::<Connection>() }
}

/// # Safety
/// `statement` must be one of `sqlite3_prepare_v2` that is not finalized, and not used elsewhere.
unsafe fn statement<'a>(statement: *mut c_void) -> &'a mut Statement {
    // SAFETY: by contract.
    unsafe { &mut *statement.cast::<Statement>() }
}

/// The real library and a real handle, if the stand-in's object has one.
fn real(handle: *mut c_void) -> Option<(&'static RealSqlite, *mut c_void)> {
    REAL.get().filter(|_| !handle.is_null()).map(|real| (real, handle))
}

/// Defines functions that the real library answers for the real handle of a connection or
/// statement, if there is one.
macro_rules! pass_on {
    ($(
        $name:ident($object:ident: $kind:ident $(, $parameter:ident: $type:ty)*) -> $result:ty
            { $function:ident or $otherwise:expr }
    )*) => {$(
        // SAFETY: the name belongs to a library that this crate replaces.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($object: *mut c_void $(, $parameter: $type)*) -> $result {
            // SAFETY: the caller passes one of our objects, whose real handle belongs to the real
            // library; all other arguments are the caller's.
            unsafe {
                real($kind($object).real).map_or($otherwise, |(real, handle)| {
                    (real.$function)(handle $(, $parameter)*)
                })
            }
        }
    )*};
}

// Databases of the stand-in contain no data.
pass_on! {
    sqlite3_busy_timeout(db: connection, milliseconds: c_int) -> c_int { busy_timeout or OK }
    sqlite3_changes(db: connection) -> c_int { changes or 0 }
    sqlite3_errmsg(db: connection) -> *const c_char { errmsg or c"not an error".as_ptr() }
    sqlite3_serialize(
        db: connection, schema: *const c_char, bytes: *mut i64, flags: c_uint
    ) -> *mut u8 { serialize or ptr::null_mut() }
    sqlite3_deserialize(
        db: connection, schema: *const c_char, data: *mut u8, bytes: i64, room: i64, flags: c_uint
    ) -> c_int { deserialize or CANTOPEN }
    sqlite3_bind_blob(
        prepared: statement, parameter: c_int, value: *const c_void, bytes: c_int,
        destructor: *mut c_void
    ) -> c_int { bind_blob or OK }
    sqlite3_bind_int64(prepared: statement, parameter: c_int, value: i64) -> c_int {
        bind_int64 or OK
    }
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_open_v2(
    path: *const c_char,
    db: *mut *mut c_void,
    flags: c_int,
    vfs: *const c_char,
) -> c_int {
    // SAFETY: the caller passes a C string.
    let name = unsafe { CStr::from_ptr(path) };
    let kernels = Owner::of_file(name.to_bytes());
    let mut opened = Connection { path: name.to_owned(), kernels, real: NONE };
    let mut result = OK;
    if kernels.is_none() || mode() != KernelDatabases::Answered {
        if let Some(real) = REAL.get() {
            let handle = &raw mut opened.real;
            // SAFETY: the caller's parameters, and a place of our own for the connection.
            result = unsafe { (real.open_v2)(path, handle, flags, vfs) };
        } else {
            record(Event::Unanswered(&format!("sqlite3_open_v2 {}", name.to_string_lossy())));
            result = CANTOPEN;
        }
    }
    // SAFETY: the caller passes a place for the connection; it also closes one that failed to open.
    unsafe { db.write(into_raw(opened)) };
    result
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_close(db: *mut c_void) -> c_int {
    if db.is_null() {
        return OK;
    }
    // SAFETY: the caller passes one of our connections.
    if let Some((real, handle)) = real(unsafe { connection(db) }.real) {
        // SAFETY: the handle belongs to the real library.
        let result = unsafe { (real.close)(handle) };
        if result != OK {
            // It stays open, and is closed again later.
            return result;
        }
    }
    // SAFETY: the caller gives up the connection.
    drop(unsafe { Box::from_raw(db.cast::<Connection>()) });
    OK
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_db_filename(db: *mut c_void, _name: *const c_char) -> *const c_char {
    // SAFETY: the caller passes one of our connections.
    unsafe { connection(db) }.path.as_ptr()
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_exec(
    db: *mut c_void,
    sql: *const c_char,
    callback: Option<Callback>,
    argument: *mut c_void,
    message: *mut *mut c_char,
) -> c_int {
    // SAFETY: the caller passes one of our connections and a C string.
    let (connection, sql_text) = unsafe { (connection(db), CStr::from_ptr(sql).to_bytes()) };
    if let Some((real, handle)) = real(connection.real) {
        // SAFETY: the handle belongs to the real library, all other arguments are the caller's.
        return unsafe { (real.exec)(handle, sql, callback, argument, message) };
    }
    let Some(callback) = callback else { return OK };
    let rows: &[(&CStr, &CStr)] = if sql_text.starts_with(b"PRAGMA table_info(kern_db)") {
        &[
            (c"name", c"id"),
            (c"name", c"kernel_name"),
            (c"name", c"kernel_args"),
            (c"name", c"kernel_blob"),
            (c"name", c"kernel_hash"),
            (c"name", c"uncompressed_size"),
        ]
    } else if sql_text.starts_with(b"PRAGMA journal_mode") {
        &[(c"journal_mode", c"wal")]
    } else {
        &[]
    };
    for (column, value) in rows {
        let (mut value, mut column) = (value.as_ptr().cast_mut(), column.as_ptr().cast_mut());
        // SAFETY: the callback is the caller's; it reads one value and one column name.
        if unsafe { callback(argument, 1, &raw mut value, &raw mut column) } != 0 {
            return ABORT;
        }
    }
    OK
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_prepare_v2(
    db: *mut c_void,
    sql: *const c_char,
    bytes: c_int,
    prepared: *mut *mut c_void,
    tail: *mut *const c_char,
) -> c_int {
    // SAFETY: the caller passes one of our connections.
    let connection = unsafe { connection(db) };
    let text = match usize::try_from(bytes) {
        // SAFETY: the caller passes this many bytes, in which a zero ends the text.
        Ok(bytes) => unsafe { slice::from_raw_parts(sql.cast::<u8>(), bytes) },
        // SAFETY: the caller passes a C string.
        Err(_) => unsafe { CStr::from_ptr(sql) }.to_bytes(),
    };
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut handle = NONE;
    let mut result = OK;
    if let Some((real, db)) = real(connection.real) {
        // SAFETY: the handle belongs to the real library, all other arguments are the caller's.
        result = unsafe { (real.prepare_v2)(db, sql, bytes, &raw mut handle, tail) };
    }
    let statement =
        if result == OK { into_raw(Statement::new(connection, text, handle)) } else { NONE };
    // SAFETY: the caller passes a place for the statement.
    unsafe { prepared.write(statement) };
    result
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_step(prepared: *mut c_void) -> c_int {
    if prepared.is_null() {
        return DONE;
    }
    // SAFETY: the caller passes one of our statements.
    unsafe { statement(prepared) }.step()
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_finalize(prepared: *mut c_void) -> c_int {
    if prepared.is_null() {
        return OK;
    }
    // SAFETY: the caller gives up the statement.
    let statement = unsafe { Box::from_raw(prepared.cast::<Statement>()) };
    // SAFETY: the handle belongs to the real library, and is finalized with our statement.
    real(statement.real).map_or(OK, |(real, handle)| unsafe { (real.finalize)(handle) })
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_reset(prepared: *mut c_void) -> c_int {
    if prepared.is_null() {
        return OK;
    }
    // SAFETY: the caller passes one of our statements.
    let statement = unsafe { statement(prepared) };
    statement.reset();
    // SAFETY: the handle belongs to the real library.
    real(statement.real).map_or(OK, |(real, handle)| unsafe { (real.reset)(handle) })
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_free(memory: *mut c_void) {
    if let Some((real, memory)) = real(memory) {
        // SAFETY: only the real library allocates memory that callers free here.
        unsafe { (real.free)(memory) };
    }
}

/// Defines functions that give a column: of the stand-in's row, if it has answered, or of the real one.
macro_rules! columns {
    ($(
        $name:ident -> $result:ty { $function:ident or $otherwise:expr $(, $column:ident $row:ident => $own:expr)* }
    )*) => {$(
        // SAFETY: the name belongs to a library that this crate replaces.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(prepared: *mut c_void, column: c_int) -> $result {
            // SAFETY: the caller passes one of our statements.
            let statement = unsafe { statement(prepared) };
            match (statement.column(column), real(statement.real)) {
                $((Some(($row, Column::$column)), _) => $own,)*
                // SAFETY: the handle belongs to the real library.
                (None, Some((real, handle))) => unsafe { (real.$function)(handle, column) },
                _ => $otherwise,
            }
        }
    )*};
}

columns! {
    sqlite3_column_blob -> *const c_void {
        column_blob or ptr::null(), Blob row => row.blob.as_ptr().cast()
    }
    sqlite3_column_text -> *const c_char { column_text or ptr::null(), Hash row => row.hash.as_ptr() }
    sqlite3_column_bytes -> c_int {
        column_bytes or 0, Blob row => row.blob.len() as c_int, Hash row => row.hash.count_bytes() as c_int
    }
    // In the stand-in's row: the uncompressed size of an object that is not compressed.
    sqlite3_column_int64 -> i64 { column_int64 or 0 }
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_bind_text(
    prepared: *mut c_void,
    parameter: c_int,
    text: *const c_char,
    bytes: c_int,
    destructor: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes one of our statements.
    let statement = unsafe { statement(prepared) };
    if let Some(lookup) = &mut statement.lookup {
        let value = match usize::try_from(bytes) {
            // SAFETY: the caller passes this many bytes.
            Ok(bytes) => unsafe { slice::from_raw_parts(text.cast::<u8>(), bytes) },
            // SAFETY: the caller passes a C string.
            Err(_) => unsafe { CStr::from_ptr(text) }.to_bytes(),
        };
        lookup.bind(parameter, value);
    }
    real(statement.real).map_or(OK, |(real, handle)| {
        // SAFETY: the handle belongs to the real library, all other arguments are the caller's.
        unsafe { (real.bind_text)(handle, parameter, text, bytes, destructor) }
    })
}
