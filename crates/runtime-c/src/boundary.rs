//! The boundary between C and Rust: panics are caught, and each thread has the
//! message of its last failure.
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
    /// The last failure of this thread, and its hint.
    static LAST: RefCell<Option<(CString, CString)>> = const { RefCell::new(None) };
}

/// Runs a call that returns a status.
pub(crate) fn call(body: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let result = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|payload| Err(Failure::Panic(message(payload))));
    result.unwrap_or_else(|failure| {
        let status = failure.status();
        let last = (c_text(in_full(&failure)), c_text(failure.hint()));
        // When a thread ends, its thread-local variables may be gone.
        LAST.try_with(|place| place.replace(Some(last))).ok();
        status
    })
}

/// Runs a call that returns nothing, and ends after a panic.
pub(crate) fn run(body: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        message(payload);
    }
}

/// Creates a handle and writes it to `out`.
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

/// Frees a handle.
///
/// # Safety
/// `handle` is null, or came from [`hand_out`] and is not used again.
pub(crate) unsafe fn take_back<T>(handle: *mut T) {
    run(|| {
        if !handle.is_null() {
            // SAFETY: it came from `Box::into_raw`, as the caller promises.
            drop(unsafe { Box::from_raw(handle) });
        }
    });
}

fn message(payload: Box<dyn Any + Send>) -> String {
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(message), _) => (*message).to_owned(),
        (_, Some(message)) => message.clone(),
        _ => "a panic".to_owned(),
    };
    // Other payloads may panic when they are dropped.
    std::mem::forget(payload);
    message
}

/// The error message of this thread's last failed call, in one line.
///
/// Null if no call has failed. Successful calls do not change it. The text
/// belongs to the library and is valid until another call of this thread fails,
/// or the thread ends. Any thread may call this; each has its own message.
#[unsafe(no_mangle)]
pub extern "C" fn gfxpack_last_error() -> *const c_char {
    last(|(error, _)| error)
}

/// A hint on how to solve gfxpack_last_error(), in one line.
///
/// Null if that is null. Owned by the library, and valid for as long as that
/// is. Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn gfxpack_last_error_hint() -> *const c_char {
    last(|(_, hint)| hint)
}

fn last(which: impl FnOnce(&(CString, CString)) -> &CString) -> *const c_char {
    let found = LAST.try_with(|last| pointer(last.borrow().as_ref().map(which)));
    found.unwrap_or(std::ptr::null())
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
        let message = text(gfxpack_last_error());
        assert_eq!(message.as_deref(), Some("failed inside of the library: on purpose"));
        run(|| panic!("again"));
        let odd = call(|| std::panic::panic_any(7));
        assert_eq!(odd, Status::Internal);
    }

    #[test]
    fn each_thread_has_its_own_failure() {
        assert_eq!(text(gfxpack_last_error()), None);
        assert_eq!(text(gfxpack_last_error_hint()), None);
        assert_eq!(call(|| Err(Failure::Null("cache"))), Status::NullPointer);
        let message = || text(gfxpack_last_error());
        let expected = "failed to use `cache`: it is a null pointer";
        assert_eq!(message().as_deref(), Some(expected));
        assert_eq!(call(|| Ok(Status::Ok)), Status::Ok);
        assert_eq!(message().as_deref(), Some(expected), "a call that succeeds changes nothing");
        let elsewhere = std::thread::spawn(|| text(gfxpack_last_error())).join().unwrap();
        assert_eq!(elsewhere, None);
    }
}
