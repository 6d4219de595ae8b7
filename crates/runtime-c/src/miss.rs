//! Why a kdb had no usable kernel, as numbers and texts.
#![expect(unsafe_code, reason = "exports functions that take handles")]

use std::ffi::{CString, c_char};

use gfxpack_runtime::{MissReason as Reason, in_full};

use crate::layer::Layer;
use crate::text::{c_path, c_text, pointer};

/// Why a kdb had no usable kernel. The first two reasons are no faults.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissReason {
    /// The file does not exist.
    NoFile = 0,
    /// The file does not have the key.
    NoKernel = 1,
    /// The whole file is unusable: too small, damaged, not a kdb, or not
    /// readable.
    Unreadable = 2,
    /// Another program keeps the file locked.
    Busy = 3,
    /// The user's file was not a kdb and was moved aside.
    MovedAside = 4,
    /// Somebody else could have written the file.
    Untrusted = 5,
    /// The file has the key, but not the complete kernel.
    Damaged = 6,
    /// The file has the key, with bytes that are not a code object.
    NoCodeObject = 7,
    /// The file has the key, with code for other devices.
    OtherTarget = 8,
    /// Something else; see the text.
    Other = 9,
}

/// A kdb that was searched in vain.
///
/// Owned by the lookup that returned it, and valid for as long as that is. It
/// never changes: any number of threads may use it.
#[derive(Debug)]
pub struct Miss {
    layer: Layer,
    reason: MissReason,
    file: CString,
    text: CString,
    hint: CString,
}

impl From<gfxpack_runtime::Miss> for Miss {
    fn from(miss: gfxpack_runtime::Miss) -> Self {
        let reason = match &miss.reason {
            Reason::NoFile => MissReason::NoFile,
            Reason::NoKernel => MissReason::NoKernel,
            reason @ Reason::Unreadable(_) if reason.name() == "busy" => MissReason::Busy,
            Reason::Unreadable(_) => MissReason::Unreadable,
            Reason::MovedAside { .. } => MissReason::MovedAside,
            Reason::Untrusted(_) => MissReason::Untrusted,
            Reason::Damaged(_) => MissReason::Damaged,
            Reason::NoCodeObject(_) => MissReason::NoCodeObject,
            Reason::OtherTarget(_) => MissReason::OtherTarget,
            _ => MissReason::Other,
        };
        let (text, hint) = (c_text(in_full(&miss.reason)), c_text(miss.reason.hint()));
        Self { layer: miss.layer.into(), reason, file: c_path(&miss.file), text, hint }
    }
}

/// Whether it was an installed kdb or the user's; GFXPACK_LAYER_NONE for null.
/// Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_miss_layer(miss: *const Miss) -> Layer {
    // SAFETY: null or part of a live lookup, as the documentation requires.
    unsafe { miss.as_ref() }.map_or(Layer::None, |it| it.layer)
}

/// Why it had no usable kernel; GFXPACK_REASON_OTHER for null. Any thread may
/// call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_miss_reason(miss: *const Miss) -> MissReason {
    // SAFETY: null or part of a live lookup, as the documentation requires.
    unsafe { miss.as_ref() }.map_or(MissReason::Other, |it| it.reason)
}

/// The kdb's absolute path; null for null. Owned by the lookup. Any thread may
/// call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_miss_file(miss: *const Miss) -> *const c_char {
    // SAFETY: null or part of a live lookup, as the documentation requires.
    pointer(unsafe { miss.as_ref() }.map(|it| &it.file))
}

/// Why it had no usable kernel, in one line of text; null for null. Owned by
/// the lookup. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_miss_text(miss: *const Miss) -> *const c_char {
    // SAFETY: null or part of a live lookup, as the documentation requires.
    pointer(unsafe { miss.as_ref() }.map(|it| &it.text))
}

/// What the user can do about it, in one line; null for null. Owned by the
/// lookup. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_miss_hint(miss: *const Miss) -> *const c_char {
    // SAFETY: null or part of a live lookup, as the documentation requires.
    pointer(unsafe { miss.as_ref() }.map(|it| &it.hint))
}
