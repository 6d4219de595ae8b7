//! Warnings handed to a function of the caller's.
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
    /// A file is less than 512 bytes: most likely a Git LFS pointer.
    TooSmall = 1,
    /// A file is no SQLite file, or a damaged one, or holds a damaged kernel.
    Corrupt = 2,
    /// The operating system does not let the file be read.
    Unreadable = 3,
    /// The file has other tables or columns.
    WrongSchema = 4,
    /// The file is in WAL mode where that can't be read.
    WalMode = 5,
    /// The file holds code for other devices, or no code.
    WrongTarget = 6,
    /// Another program keeps the file locked.
    Busy = 7,
    /// The user's cache is not where it should be, or nowhere.
    UserPlace = 8,
    /// A file or directory belongs to somebody else or others may write to it.
    Untrusted = 9,
    /// A compiled kernel could not be saved.
    NotStored = 10,
    /// Something else, which the text tells.
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
            Class::UserPlace => Self::UserPlace,
            Class::Untrusted => Self::Untrusted,
            Class::NotStored => Self::NotStored,
            _ => Self::Other,
        }
    }
}

/// A function that is told of warnings, each once per cache and file.
///
/// It is called by whichever thread opens or asks the cache, several at a time
/// if need be, before that call returns. `file` and `text` are the library's
/// and end with the call. `text` is one line, for
/// GFXPACK_WARNING_CLASS_MISSING_SYSTEM_KDB two, without a newline at its end.
/// The function must return: no longjmp() and no C++ exception out of it (an
/// exception ends the process). It may use the cache.
pub type WarningFn = Option<
    unsafe extern "C-unwind" fn(
        user_data: *mut c_void,
        kind: WarningClass,
        file: *const c_char,
        text: *const c_char,
    ),
>;

/// The caller's function and what it wants handed to it.
#[derive(Clone, Copy)]
struct Callback {
    function: unsafe extern "C-unwind" fn(*mut c_void, WarningClass, *const c_char, *const c_char),
    user_data: *mut c_void,
}

// SAFETY: the pointer is only handed to the caller's function, which is documented to be called
// from any thread.
unsafe impl Send for Callback {}
// SAFETY: as above: several at a time.
unsafe impl Sync for Callback {}

impl Callback {
    fn tell(self, warning: &gfxpack_runtime::Warning) {
        let (file, text) = (c_path(&warning.file), c_text(warning.text.as_str()));
        // SAFETY: the function is the caller's and takes these; the texts live until it returns.
        unsafe {
            (self.function)(self.user_data, warning.class.into(), file.as_ptr(), text.as_ptr());
        }
    }
}

/// Where warnings go: to the function, or to standard error where it is null.
pub(crate) fn sink(function: WarningFn, user_data: *mut c_void) -> WarningSink {
    let Some(function) = function else { return WarningSink::Stderr };
    let callback = Callback { function, user_data };
    WarningSink::Callback(Arc::new(move |warning| callback.tell(warning)))
}
