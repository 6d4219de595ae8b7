//! The stand-in's connections and statements, and the answer to a lookup.

use core::ffi::c_int;
use std::ffi::CString;
use std::fmt::Write as _;
use std::ptr;
use std::sync::Arc;

use md5::{Digest as _, Md5};

use super::query::{Column, Lookup};
use super::real::{Db, Stmt};
use super::{LAST_FOUND, REAL, answer, answers_missing, is_withheld};
use crate::code_object::{STAND_IN_BYTES, stand_in};
use crate::record::{Event, record};

pub(super) const OK: c_int = 0;
pub(super) const ROW: c_int = 100;
pub(super) const DONE: c_int = 101;

/// A connection: `sqlite3`.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) path: CString,
    pub(super) kernels: Option<Owner>,
    /// Null if only the stand-in answers.
    pub(super) real: Db,
}

/// The owner of a kernel database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user's, which is searched first.
    User,
    /// The installed one.
    System,
}

impl Owner {
    /// From the file's name.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in `binary_cache.cpp`.
    pub(super) fn of_file(path: &[u8]) -> Option<Self> {
        if path.ends_with(b".ukdb") {
            Some(Self::User)
        } else if path.ends_with(b".kdb") {
            Some(Self::System)
        } else {
            None
        }
    }
}

/// A prepared statement: `sqlite3_stmt`.
#[derive(Debug)]
pub(super) struct Statement {
    owner: Option<Owner>,
    pub(super) lookup: Option<Lookup>,
    /// Null if only the stand-in answers.
    pub(super) real: Stmt,
    stepped: bool,
    /// The stand-in's row, if it has answered.
    pub(super) row: Option<Row>,
}

/// The stand-in's row for a lookup.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) columns: Vec<Column>,
    pub(super) blob: [u8; STAND_IN_BYTES],
    /// The MD5 of the blob, in hexadecimal digits.
    pub(super) hash: CString,
}

impl Statement {
    pub(super) fn new(connection: &Connection, sql: &[u8], real: Stmt) -> Self {
        let lookup = connection.kernels.and_then(|_| Lookup::parse(sql));
        Self { owner: connection.kernels, lookup, real, stepped: false, row: None }
    }

    /// `sqlite3_step`.
    pub(super) fn step(&mut self) -> c_int {
        let first = !std::mem::replace(&mut self.stepped, true);
        if self.real.is_null() || self.row.is_some() {
            let Some(lookup) = self.lookup.as_ref().filter(|_| first) else { return DONE };
            if is_withheld(&lookup.key) {
                record(Event::Missed(&lookup.key));
                return DONE;
            }
            record(Event::Asked(&lookup.key));
            self.row = Some(Row::answering(lookup));
            return ROW;
        }
        let Some(real) = REAL.get() else { return DONE };
        // SAFETY: the real library has prepared the statement.
        let result = unsafe { (real.step)(self.real) };
        let Some(lookup) = self.lookup.as_ref().filter(|_| first) else { return result };
        if result == ROW {
            record(Event::Found(&lookup.key));
            LAST_FOUND.set(Some(Arc::new(lookup.key.clone())));
        } else if result == DONE && self.owner == Some(Owner::System) {
            record(Event::Missed(&lookup.key));
            LAST_FOUND.set(None);
            if answers_missing() && !is_withheld(&lookup.key) {
                self.row = Some(Row::answering(lookup));
                return ROW;
            }
        }
        result
    }

    /// Prepares for another `sqlite3_step`.
    pub(super) fn reset(&mut self) {
        self.stepped = false;
        self.row = None;
    }

    /// The stand-in's column with that number.
    pub(super) fn column(&self, number: c_int) -> Option<(&Row, Column)> {
        let row = self.row.as_ref()?;
        let column = usize::try_from(number).ok().and_then(|number| row.columns.get(number));
        Some((row, column.copied().unwrap_or(Column::Other)))
    }
}

impl Row {
    fn answering(lookup: &Lookup) -> Self {
        let blob = stand_in(answer(&Arc::new(lookup.key.clone())));
        let hash = Md5::digest(blob).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes all");
            text
        });
        let hash = CString::new(hash).expect("hexadecimal digits");
        Self { columns: lookup.columns.clone(), blob, hash }
    }
}

/// Turns a value into a pointer for the caller.
pub(super) fn into_raw<T>(value: T) -> *mut core::ffi::c_void {
    Box::into_raw(Box::new(value)).cast()
}

/// A null handle, for a statement or connection without a real one.
pub(super) const NONE: *mut core::ffi::c_void = ptr::null_mut();
