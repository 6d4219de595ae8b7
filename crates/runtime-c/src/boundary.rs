//! The line between C and Rust: no panic crosses it, and each thread has the
//! words of its last failure.
#![expect(unsafe_code, reason = "exports functions, and takes handles that C keeps for us")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gfxpack_runtime::in_full;

use crate::failure::Failure;
use crate::status::Status;
use crate::text::{c_text, pointer};

thread_local! {
    /// The last failure of this thread, and what can be done about it.
    static LAST: RefCell<Option<(CString, CString)>> = const { RefCell::new(None) };
}

/// Carries out a call that has a status.
pub(crate) fn call(body: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let result = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|payload| Err(Failure::Panic(words(payload))));
    result.unwrap_or_else(|failure| {
        let status = failure.status();
        let last = (c_text(in_full(&failure)), c_text(failure.hint()));
        // A thread that is ending has no place for it any more.
        LAST.try_with(|place| place.replace(Some(last))).ok();
        status
    })
}

/// Carries out a call that has an answer and no status.
pub(crate) fn answer<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(answer) => answer,
        Err(payload) => {
            words(payload);
            otherwise
        }
    }
}

/// Gives a new handle to the caller.
///
/// # Safety
/// `out` is null or may be written to.
pub(crate) unsafe fn hand_out<T>(
    out: *mut *mut T,
    make: impl FnOnce() -> Result<(T, Status), Failure>,
) -> Status {
    call(|| {
        if out.is_null() {
            return Err(Failure::Null("out"));
        }
        // SAFETY: not null, so it may be written to, as the caller promises.
        unsafe { out.write(std::ptr::null_mut()) };
        let (handle, status) = make()?;
        // SAFETY: as above.
        unsafe { out.write(Box::into_raw(Box::new(handle))) };
        Ok(status)
    })
}

/// Ends a handle.
///
/// # Safety
/// `handle` is null, or came from [`hand_out`] and is not used again.
pub(crate) unsafe fn take_back<T>(handle: *mut T) {
    answer((), || {
        if !handle.is_null() {
            // SAFETY: it came from `Box::into_raw`, as the caller promises.
            drop(unsafe { Box::from_raw(handle) });
        }
    });
}

/// What a handle or out pointer points to, or the failure that it is null.
///
/// # Safety
/// `handle` is null, or points to what lives for `'a` and is not written to.
pub(crate) unsafe fn borrow<'a, T>(
    handle: *const T,
    argument: &'static str,
) -> Result<&'a T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or(Failure::Null(argument))
}

/// The same, to be changed.
///
/// # Safety
/// `handle` is null, or points to what lives for `'a` and which nobody else
/// uses.
pub(crate) unsafe fn borrow_mut<'a, T>(
    handle: *mut T,
    argument: &'static str,
) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_mut() }.ok_or(Failure::Null(argument))
}

fn words(payload: Box<dyn Any + Send>) -> String {
    let words = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(words), _) => (*words).to_owned(),
        (_, Some(words)) => words.clone(),
        _ => "a panic".to_owned(),
    };
    // What it is else may panic when it is dropped.
    std::mem::forget(payload);
    words
}

/// What the last call of this thread that failed failed with, in one line.
///
/// Null where none has. Calls that succeed do not change it. The text belongs
/// to the library and is good until another call of this thread fails, or the
/// thread ends. Any thread may call this; each has its own.
#[unsafe(no_mangle)]
pub extern "C" fn gfxpack_last_error() -> *const c_char {
    last(|(error, _)| error)
}

/// What can be done about gfxpack_last_error(), in one line.
///
/// Null where that is null. Owned and to be used as that is. Any thread may
/// call this.
#[unsafe(no_mangle)]
pub extern "C" fn gfxpack_last_error_hint() -> *const c_char {
    last(|(_, hint)| hint)
}

fn last(which: impl FnOnce(&(CString, CString)) -> &CString) -> *const c_char {
    answer(std::ptr::null(), || {
        let found = LAST.try_with(|place| pointer(place.borrow().as_ref().map(which)));
        found.unwrap_or(std::ptr::null())
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn text(pointer: *const c_char) -> Option<String> {
        if pointer.is_null() {
            return None;
        }
        // SAFETY: not null, so it is the thread's own text, and nothing fails meanwhile.
        Some(unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_panic_becomes_a_status() {
        let status = call(|| panic!("on {}", "purpose"));
        assert_eq!(status, Status::Internal);
        let said = text(gfxpack_last_error());
        assert_eq!(said.as_deref(), Some("failed inside of the library: on purpose"));
        assert_eq!(answer(7, || panic!("again")), 7);
        let odd = call(|| std::panic::panic_any(7));
        assert_eq!(odd, Status::Internal);
    }

    #[test]
    fn each_thread_has_its_own_failure() {
        assert_eq!(text(gfxpack_last_error()), None);
        assert_eq!(text(gfxpack_last_error_hint()), None);
        assert_eq!(call(|| Err(Failure::Null("cache"))), Status::NullPointer);
        let said = || text(gfxpack_last_error());
        let expected = "failed to use `cache`: it is a null pointer";
        assert_eq!(said().as_deref(), Some(expected));
        assert_eq!(call(|| Ok(Status::Ok)), Status::Ok);
        assert_eq!(said().as_deref(), Some(expected), "what succeeds changes nothing");
        let elsewhere = std::thread::spawn(|| text(gfxpack_last_error())).join().unwrap();
        assert_eq!(elsewhere, None);
    }
}
