//! Stand-ins for the HIP runtime and related libraries, so that a stock ROCm library can be asked
//! which kernels it would compile.
//!
//! The functions of this crate are exported under the names that such a library imports. A program
//! that links this crate with `-rdynamic`, or a preloaded shared library, replaces libamdhip64,
//! rocBLAS, hipBLASLt, rocRAND, rocTX, comgr, hipRTC, SQLite and `popen`. They claim a device
//! ([`SimulatedGpu`]), compute nothing, refuse to compile unless told otherwise
//! ([`compile_to_stand_ins`]), and answer every lookup in a kernel database ([`kernel_databases`])
//! but of kernels that are withheld ([`withhold`]).
//! Requests are reported to a recorder ([`set_recorder`]).
//!
//! This crate does not depend on the library that is loaded. Calling it and interpreting its
//! answers is up to the program.
//!
//! ```
//! // What a library that this program loads takes for the machine's GPU.
//! let gpu = gfxpack_standin::SimulatedGpu { architecture: c"gfx90a".into(), compute_units: 104 };
//! gfxpack_standin::simulate_gpu(gpu);
//! ```
#![expect(unsafe_code, reason = "defines C functions that other programs call with their pointers")]

mod code_object;
mod comgr;
mod computing;
mod hip;
mod hiprtc;
mod loader;
mod process;
mod random;
mod record;
mod simulated_gpu;
mod sqlite;

pub use hip::event::make_each_solver_faster;
pub use hip::memory::allocate;
pub use hiprtc::compile_to_stand_ins;
pub use loader::{function, load_library};
pub use record::{Event, Key, set_recorder};
pub use simulated_gpu::{SimulatedGpu, simulate_gpu};
pub use sqlite::{KernelDatabases, kernel_databases, load_sqlite, withhold};

/// Defines functions that do nothing and return 0, which means success in every interface here.
/// They are declared without the parameters that callers pass: in the C calling conventions of
/// Linux, the caller removes these.
macro_rules! succeed {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        $(#[$attribute])*
        // SAFETY: the name belongs to a library that this crate replaces.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> core::ffi::c_int {
            0
        }
    )*};
}
pub(crate) use succeed;

/// Defines functions that write values to the places in their parameters, and succeed:
/// `hipGetDevice(device: *mut c_int) { *device = 0 }`. Objects that they return are dangling
/// pointers, which are never dereferenced.
macro_rules! give {
    ($(
        $name:ident($($parameter:ident: $type:ty),*) { $(*$place:ident = $value:expr),+ }
    )*) => {$(
        // SAFETY: the name belongs to a library that this crate replaces.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($parameter: $type),*) -> core::ffi::c_int {
            // SAFETY: the caller passes places for the values.
            $(unsafe { $place.write($value) };)+
            0
        }
    )*};
}
pub(crate) use give;
