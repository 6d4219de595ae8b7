//! Streams and events: everything has already happened, with made-up times.

use core::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{give, succeed};

/// The time of the slowest launch in milliseconds: whole numbers of this size are exact in 32-bit
/// floating point.
const SLOWEST: u32 = 16_000_000;
/// The difference between launches; sums of a few launches also differ.
const STEP: u32 = 4;
/// The time of all other launches in milliseconds; zero would be taken for an error.
const USUAL: f32 = 0.001;

static EACH_BETTER: AtomicBool = AtomicBool::new(false);
static LOADED: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicU32 = AtomicU32::new(SLOWEST);

/// From now on, the first launch after functions were loaded takes hours, though less than any
/// before; all others still take a microsecond.
///
/// A library that compares solvers by their times then tries each once, and finds each better
/// than those before, so that none is skipped.
pub fn make_each_solver_faster() {
    EACH_BETTER.store(true, Ordering::Relaxed);
}

/// Records that a function was loaded.
pub(super) fn function_loaded() {
    LOADED.store(true, Ordering::Relaxed);
}

fn elapsed() -> f32 {
    let first = LOADED.swap(false, Ordering::Relaxed);
    if first && EACH_BETTER.load(Ordering::Relaxed) {
        let next = NEXT.fetch_sub(STEP, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "at most 16,000,000, which is exact")]
        return next as f32;
    }
    USUAL
}

give! {
    hipEventElapsedTime(milliseconds: *mut f32, _start: *mut c_void, _stop: *mut c_void) {
        *milliseconds = elapsed()
    }
    hipEventCreate(event: *mut *mut c_void) { *event = ptr::dangling_mut() }
    hipEventCreateWithFlags(event: *mut *mut c_void, _flags: c_uint) { *event = ptr::dangling_mut() }
    hipStreamCreate(stream: *mut *mut c_void) { *stream = ptr::dangling_mut() }
    hipStreamCreateWithFlags(stream: *mut *mut c_void, _flags: c_uint) {
        *stream = ptr::dangling_mut()
    }
    hipStreamGetDevice(_stream: *mut c_void, device: *mut c_int) { *device = 0 }
}

succeed! {
    hipEventDestroy
    hipEventQuery
    hipEventRecord
    hipEventSynchronize
    hipStreamDestroy
    hipStreamQuery
    hipStreamSynchronize
    hipStreamWaitEvent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_solver_is_faster_than_those_before() {
        function_loaded();
        assert!(elapsed() < 0.01);
        make_each_solver_faster();
        let mut last = f32::MAX;
        for _ in 0..1000 {
            function_loaded();
            let first = elapsed();
            assert!(first > 5000.0, "long enough to be measured once only");
            assert!(first < last);
            assert!(elapsed() < 0.01, "what it runs besides takes next to nothing");
            last = first;
        }
    }
}
