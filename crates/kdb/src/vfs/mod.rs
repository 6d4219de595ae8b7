//! How SQLite writes a new kdb: in pieces of many pages, where it would make a
//! system call for each page by itself. A VFS around SQLite's own, which opens
//! the files, locks them, and says what an error means.
#![expect(unsafe_code, reason = "a VFS is a table of C functions")]

mod joined;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi;

use joined::{File, Joined, Status};

/// Bytes of a piece. SQLite's VFS for Unix writes nothing of 128 KiB, and says
/// that the disk is full.
///
/// Source: SQLite 3.54.1, `seekAndWriteFd` in os_unix.c, `nBuf &= 0x1ffff`.
const PIECE: u32 = 64 << 10;

const NAME: &CStr = c"gfxpack-joined";

/// The VFS's name, which is known to SQLite from now on. It is not the default.
///
/// # Errors
/// SQLite's: it has no VFS at all, or lacks memory.
pub(crate) fn name() -> Result<&'static CStr, rusqlite::Error> {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    status(*REGISTERED.get_or_init(register))
        .map_err(|code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))?;
    Ok(NAME)
}

/// Our VFS, with the one that it is put around.
#[repr(C)]
struct Vfs {
    /// What SQLite sees.
    shown: ffi::sqlite3_vfs,
    inner: *mut ffi::sqlite3_vfs,
}

fn register() -> c_int {
    // SAFETY: null asks for the default.
    let inner = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    // SAFETY: null, or a VFS, none of which is ever taken back.
    let Some(&described) = (unsafe { inner.as_ref() }) else { return ffi::SQLITE_ERROR };
    // All but opening is left to functions of the one inside. Of the VFS that
    // they are given they read what is the same in ours.
    let shown = ffi::sqlite3_vfs {
        szOsFile: described.szOsFile.max(size_of::<Handle>() as c_int),
        pNext: ptr::null_mut(),
        zName: NAME.as_ptr(),
        xOpen: Some(open),
        ..described
    };
    let ours = Box::leak(Box::new(Vfs { shown, inner }));
    // SAFETY: it begins with what SQLite expects, and stays for good.
    unsafe { ffi::sqlite3_vfs_register(ptr::from_mut(ours).cast(), 0) }
}

/// What SQLite has of an open file.
#[repr(C)]
struct Handle {
    shown: ffi::sqlite3_file,
    joined: *mut Joined<Inner>,
}

/// The open file of the VFS inside.
struct Inner {
    /// Points into `_memory`.
    file: *mut ffi::sqlite3_file,
    methods: &'static ffi::sqlite3_io_methods,
    /// As many bytes as that VFS wants, aligned as SQLite aligns them. No box:
    /// that would claim to be the only way to them whenever it is moved.
    _memory: Vec<u64>,
}

/// Calls a method of the file inside; one that is missing fails.
macro_rules! call {
    ($inner:expr, $method:ident $(, $argument:expr)*) => {{
        let inner: &mut Inner = $inner;
        match inner.methods.$method {
            // SAFETY: the file is open, its methods are those it was opened
            // with, and the arguments are as SQLite gives them, or of slices.
            Some(method) => unsafe { method(inner.file $(, $argument)*) },
            None => ffi::SQLITE_IOERR,
        }
    }};
}

impl File for Inner {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Status {
        status(call!(self, xRead, bytes.as_mut_ptr().cast(), bytes.len() as c_int, at as i64))
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Status {
        status(call!(self, xWrite, bytes.as_ptr().cast(), bytes.len() as c_int, at as i64))
    }

    fn truncate(&mut self, size: u64) -> Status {
        status(call!(self, xTruncate, size as i64))
    }

    fn size(&mut self) -> Status<u64> {
        let mut size = 0;
        status(call!(self, xFileSize, &mut size))?;
        Ok(size as u64)
    }
}

fn status(code: c_int) -> Status {
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) }
}

/// Opens a database with a window before it. SQLite's other files, which it
/// has for a moment, are opened as ever.
unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives the VFS that was registered, which is a `Vfs`, and
    // the one in it is never taken back. Its place in SQLite's list may change.
    let (inner, open, size) = unsafe {
        let inner = (*vfs.cast::<Vfs>()).inner;
        (inner, (*inner).xOpen, (*inner).szOsFile)
    };
    let Some(open) = open else { return ffi::SQLITE_CANTOPEN };
    if flags & ffi::SQLITE_OPEN_MAIN_DB == 0 {
        // SAFETY: `szOsFile` has room for a file of the VFS inside, which from
        // here on is all that there is.
        return unsafe { open(inner, name, file, flags, out_flags) };
    }
    let words = (size as usize).div_ceil(size_of::<u64>());
    let mut memory = vec![0_u64; words];
    let below: *mut ffi::sqlite3_file = memory.as_mut_ptr().cast();
    // SAFETY: the arguments are SQLite's; `below` has the room that it needs.
    let code = unsafe { open(inner, name, below, flags, out_flags) };
    // SAFETY: opening sets the methods, to null where there is nothing to
    // close. A table of methods stays for good.
    let methods = unsafe { (*below).pMethods.as_ref() };
    let joined = match methods {
        Some(methods) if code == ffi::SQLITE_OK => {
            let inner = Inner { file: below, methods, _memory: memory };
            Box::into_raw(Box::new(Joined::new(inner, PIECE)))
        }
        Some(methods) => {
            let mut inner = Inner { file: below, methods, _memory: memory };
            call!(&mut inner, xClose);
            ptr::null_mut()
        }
        None => ptr::null_mut(),
    };
    let shown = ffi::sqlite3_file {
        pMethods: if joined.is_null() { ptr::null() } else { &raw const METHODS },
    };
    // SAFETY: `szOsFile` has room for a `Handle`, and SQLite's memory is
    // aligned for one.
    unsafe { file.cast::<Handle>().write(Handle { shown, joined }) };
    code
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Without shared memory and mapping: neither is used for new kdbs.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// The open file.
///
/// # Safety
/// `file` is one that [`open`] opened, and not closed. Nobody else uses it in
/// the meantime.
unsafe fn joined<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Joined<Inner> {
    // SAFETY: as the caller promises; only `close` takes it back.
    unsafe { &mut *(*file.cast::<Handle>()).joined }
}

/// Does something with an open file, and no panic comes out of it.
fn guarded<F: File>(joined: &mut Joined<F>, act: impl FnOnce(&mut Joined<F>) -> Status) -> c_int {
    match catch_unwind(AssertUnwindSafe(|| act(joined))) {
        Ok(Ok(())) => ffi::SQLITE_OK,
        Ok(Err(code)) => code,
        Err(_) => joined.fail(ffi::SQLITE_IOERR),
    }
}

// What follows is called by SQLite alone: with a file that `open` opened, from
// one thread at a time, and with arguments as its documentation says.

/// SQLite does not listen for errors here. There is nothing left to write: a
/// commit has seen to that, by way of [`file_control`].
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: it came from `Box::into_raw`, and SQLite does not use it again.
    let mut joined = unsafe { Box::from_raw((*file.cast::<Handle>()).joined) };
    let written = guarded(&mut joined, |joined| joined.whole().map(drop));
    let closed = call!(joined.file(), xClose);
    if written == ffi::SQLITE_OK { closed } else { written }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    bytes: *mut c_void,
    len: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives `len` bytes to write to. Nobody may have done so
    // yet, hence the zeros.
    let bytes = unsafe {
        bytes.write_bytes(0, len as usize);
        std::slice::from_raw_parts_mut(bytes.cast::<u8>(), len as usize)
    };
    // SAFETY: SQLite calls.
    guarded(unsafe { joined(file) }, |joined| joined.read(at as u64, bytes))
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    len: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives `len` bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len as usize) };
    // SAFETY: SQLite calls.
    guarded(unsafe { joined(file) }, |joined| joined.write(at as u64, bytes))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite calls.
    guarded(unsafe { joined(file) }, |joined| joined.truncate(size as u64))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls.
    guarded(unsafe { joined(file) }, |joined| status(call!(joined.whole()?, xSync, flags)))
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    answer: *mut ffi::sqlite3_int64,
) -> c_int {
    let mut size = 0;
    // SAFETY: SQLite calls.
    let code = guarded(unsafe { joined(file) }, |joined| {
        size = joined.size()?;
        Ok(())
    });
    // SAFETY: SQLite gives a place for the answer.
    unsafe { answer.write(size as i64) };
    code
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite calls.
    guarded(unsafe { joined(file) }, |joined| status(call!(joined.file(), xLock, level)))
}

/// Others may read from now on. The lock goes even if they find too little.
unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite calls.
    guarded(unsafe { joined(file) }, |joined| {
        let written = joined.whole().map(drop);
        written.and(status(call!(joined.file(), xUnlock, level)))
    })
}

unsafe extern "C" fn check_reserved_lock(
    file: *mut ffi::sqlite3_file,
    answer: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls.
    guarded(unsafe { joined(file) }, |joined| {
        status(call!(joined.file(), xCheckReservedLock, answer))
    })
}

/// A commit says here that it has written everything, with
/// `SQLITE_FCNTL_SYNC`, even where it then asks for no sync. Before nearly
/// every new page SQLite says that the file will grow.
unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls.
    guarded(unsafe { joined(file) }, |joined| {
        let inner = match operation {
            ffi::SQLITE_FCNTL_SIZE_HINT => joined.file(),
            _ => joined.whole()?,
        };
        status(call!(inner, xFileControl, operation, argument))
    })
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite calls.
    call!(unsafe { joined(file) }.file(), xSectorSize)
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite calls.
    call!(unsafe { joined(file) }.file(), xDeviceCharacteristics)
}
