//! rocRAND: generators that leave memory as it is.

use core::ffi::{c_int, c_void};

use crate::succeed;

/// Source: rocRAND, `rocrand.h`.
// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocrand_create_generator(generator: *mut *mut c_void, _kind: c_int) -> c_int {
    // SAFETY: the caller passes where to put the generator, which nobody looks into.
    unsafe { generator.write(core::ptr::dangling_mut()) };
    0
}

succeed! {
    rocrand_destroy_generator
    rocrand_generate_uniform
    rocrand_generate_uniform_double
    rocrand_generate_uniform_half
    rocrand_set_offset
    rocrand_set_ordering
    rocrand_set_seed
}
