//! Stand-ins for the HIP runtime and its neighbours, so that a stock ROCm
//! library can be asked what it would compile.
//!
//! The functions of this crate are exported under the names that such a
//! library imports: a program that links this crate with `-rdynamic`, or a
//! shared library that is preloaded, takes the place of libamdhip64, rocBLAS,
//! hipBLASLt, rocRAND, rocTX, comgr, hipRTC, SQLite and `popen`. They claim a
//! device ([`Claim`]), compute nothing, refuse to compile
//! unless told otherwise ([`compile_to_stand_ins`]), and answer every lookup in a kernel database ([`kernel_databases`]); what they were asked for goes to a
//! [`Recorder`].
//!
//! This crate does not know which library it is loaded with: what a library
//! is called with, and what its answers mean, is the program's part.
//!
//! ```
//! // What a library that this program loads takes for the machine's GPU.
//! let claim = gfxpack_standin::Claim { architecture: c"gfx90a".into(), compute_units: 104 };
//! gfxpack_standin::set_claim(claim);
//! ```
#![expect(unsafe_code, reason = "defines C functions that other programs call with their pointers")]

mod claim;
mod code_object;
mod comgr;
mod hip;
mod hipblaslt;
mod hiprtc;
mod process;
mod random;
mod record;
mod rocblas;
mod rocrand;
mod roctx;
mod sqlite;

pub use claim::{Claim, set_claim};
pub use hip::event::{Times, set_times};
pub use hip::memory::{allocate, is_device};
pub use hiprtc::compile_to_stand_ins;
pub use record::{Event, Key, Recorder, set_recorder};
pub use sqlite::{KernelDatabases, kernel_databases, load_sqlite};

/// Defines functions that do nothing and return 0, which is success in every
/// interface here. They are declared without the parameters that callers
/// pass: in the C calling conventions of Linux the caller removes them.
macro_rules! succeed {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        $(#[$attribute])*
        // SAFETY: the name is that of a library which this crate takes the place of.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> core::ffi::c_int {
            0
        }
    )*};
}
pub(crate) use succeed;

/// Defines functions that put values where their parameters point to, and
/// succeed: `hipGetDevice(device: *mut c_int) { *device = 0 }`. Objects that
/// they hand out are dangling pointers: nobody looks into them.
macro_rules! give {
    ($(
        $name:ident($($parameter:ident: $type:ty),*) { $(*$place:ident = $value:expr),+ }
    )*) => {$(
        // SAFETY: the name is that of a library which this crate takes the place of.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($parameter: $type),*) -> core::ffi::c_int {
            // SAFETY: the caller passes where to put the values.
            $(unsafe { $place.write($value) };)+
            0
        }
    )*};
}
pub(crate) use give;
