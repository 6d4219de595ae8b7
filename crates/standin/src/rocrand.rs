//! rocRAND: generators that do not write to memory.

use core::ffi::{c_int, c_void};

use crate::{give, succeed};

// Source: rocRAND, `rocrand.h`.
give! {
    rocrand_create_generator(generator: *mut *mut c_void, _kind: c_int) {
        *generator = core::ptr::dangling_mut()
    }
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
