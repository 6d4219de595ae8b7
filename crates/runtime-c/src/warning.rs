//! Warnings passed to the caller's function.
#![expect(unsafe_code, reason = "calls the caller's function, from any thread")]

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use gfxpack_runtime::WarningSink;

use crate::text::{c_path, c_text};

/// What a warning is about.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningClass {
    /// No kdb is installed for the device.
    MissingSystemKdb = 0,
    /// A file has less than 512 bytes: most likely it is a Git LFS pointer.
    TooSmall = 1,
    /// A file is not an SQLite file, is damaged, or contains a damaged kernel.
    Corrupt = 2,
    /// The operating system refuses to read the file.
    Unreadable = 3,
    /// The file has unexpected tables or columns.
    WrongSchema = 4,
    /// The file is in WAL mode, in a place in which that can't be read.
    WalMode = 5,
    /// The file contains code for other devices, or no code.
    WrongTarget = 6,
    /// Another program keeps the file locked.
    Busy = 7,
    /// The user's cache is not in its usual place, or there is none.
    UserPlace = 8,
    /// A file or directory belongs to another user, or others may write to it.
    Untrusted = 9,
    /// A compiled kernel could not be saved.
    NotStored = 10,
    /// Something else; see the text.
    Other = 11,
}

impl From<gfxpack_runtime::WarningClass> for WarningClass {
    fn from(class: gfxpack_runtime::WarningClass) -> Self {
        use gfxpack_runtime::WarningClass as Class;
        match class {
            Class::MissingSystemKdb => Self::MissingSystemKdb,
            Class::TooSmall => Self::TooSmall,
            Class::Corrupt => Self::Corrupt,
            Class::Unreadable => Self::Unreadable,
            Class::WrongSchema => Self::WrongSchema,
            Class::WalMode => Self::WalMode,
            Class::WrongTarget => Self::WrongTarget,
            Class::Busy => Self::Busy,
            Class::UserDirectory => Self::UserPlace,
            Class::Untrusted => Self::Untrusted,
            Class::NotStored => Self::NotStored,
            _ => Self::Other,
        }
    }
}

/// A function that receives warnings, each once per cache and file.
///
/// It is called by any thread that opens or uses the cache, before that call
/// returns; several calls may run at once. `file` and `text` belong to the
/// library and are valid until the function returns. `text` is one line, or two
/// for GFXPACK_WARNING_CLASS_MISSING_SYSTEM_KDB, without a final newline. The
/// function must return: no longjmp() and no C++ exception out of it (an
/// exception ends the process). It may use the cache.
pub type WarningFn = Option<
    unsafe extern "C-unwind" fn(
        user_data: *mut c_void,
        kind: WarningClass,
        file: *const c_char,
        text: *const c_char,
    ),
>;

/// The caller's function and its argument.
#[derive(Clone, Copy)]
struct Callback {
    function: unsafe extern "C-unwind" fn(*mut c_void, WarningClass, *const c_char, *const c_char),
    user_data: *mut c_void,
}

// SAFETY: the pointer is only handed to the caller's function, which is documented to be called
// from any thread.
unsafe impl Send for Callback {}
// SAFETY: as above; several calls may run at once.
unsafe impl Sync for Callback {}

impl Callback {
    fn call(self, warning: &gfxpack_runtime::Warning) {
        let (file, text) = (c_path(&warning.file), c_text(warning.text.as_str()));
        // SAFETY: the caller's function takes these arguments; the texts live until it returns.
        unsafe {
            (self.function)(self.user_data, warning.class.into(), file.as_ptr(), text.as_ptr());
        }
    }
}

/// The receiver of warnings: the function, or standard error if it is null.
pub(crate) fn sink(function: WarningFn, user_data: *mut c_void) -> WarningSink {
    let Some(function) = function else { return WarningSink::Stderr };
    let callback = Callback { function, user_data };
    WarningSink::Callback(Arc::new(move |warning| callback.call(warning)))
}
