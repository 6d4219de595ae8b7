//! The real SQLite, loaded beside the stand-in with the same names.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;

use crate::interface;
use crate::loader::{error, load_library};

/// `sqlite3*`.
pub(super) type Db = *mut c_void;
/// `sqlite3_stmt*`.
pub(super) type Stmt = *mut c_void;
/// The callback of `sqlite3_exec`.
pub(super) type Callback =
    unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

interface! {
    /// The functions of the real library that are used here.
    ///
    /// Source: SQLite, "C-language Interface Specification".
    RealSqlite {
        open_v2: "sqlite3_open_v2" = fn(*const c_char, *mut Db, c_int, *const c_char) -> c_int;
        close: "sqlite3_close" = fn(Db) -> c_int;
        busy_timeout: "sqlite3_busy_timeout" = fn(Db, c_int) -> c_int;
        changes: "sqlite3_changes" = fn(Db) -> c_int;
        errmsg: "sqlite3_errmsg" = fn(Db) -> *const c_char;
        exec: "sqlite3_exec"
            = fn(Db, *const c_char, Option<Callback>, *mut c_void, *mut *mut c_char) -> c_int;
        prepare_v2: "sqlite3_prepare_v2"
            = fn(Db, *const c_char, c_int, *mut Stmt, *mut *const c_char) -> c_int;
        step: "sqlite3_step" = fn(Stmt) -> c_int;
        finalize: "sqlite3_finalize" = fn(Stmt) -> c_int;
        reset: "sqlite3_reset" = fn(Stmt) -> c_int;
        free: "sqlite3_free" = fn(*mut c_void);
        serialize: "sqlite3_serialize" = fn(Db, *const c_char, *mut i64, c_uint) -> *mut u8;
        deserialize: "sqlite3_deserialize"
            = fn(Db, *const c_char, *mut u8, i64, i64, c_uint) -> c_int;
        column_blob: "sqlite3_column_blob" = fn(Stmt, c_int) -> *const c_void;
        column_bytes: "sqlite3_column_bytes" = fn(Stmt, c_int) -> c_int;
        column_int64: "sqlite3_column_int64" = fn(Stmt, c_int) -> i64;
        column_text: "sqlite3_column_text" = fn(Stmt, c_int) -> *const c_char;
        bind_blob: "sqlite3_bind_blob"
            = fn(Stmt, c_int, *const c_void, c_int, *mut c_void) -> c_int;
        bind_int64: "sqlite3_bind_int64" = fn(Stmt, c_int, i64) -> c_int;
        bind_text: "sqlite3_bind_text"
            = fn(Stmt, c_int, *const c_char, c_int, *mut c_void) -> c_int;
    }
}

impl RealSqlite {
    pub(super) fn load(library: &Path) -> Result<Self, String> {
        // It finds its own functions before this program's of the same names.
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
        Self::find(load_library(library, flags)?, "").map_err(|_| error())
    }
}
