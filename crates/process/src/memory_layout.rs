//! Starts programs with the same memory layout in every run.

use std::io;
use std::sync::Once;

use nix::sys::personality::{self, Persona};

/// Starts a program without address-space randomisation, which its children inherit. If a kernel or
/// container does not allow this, the program is started anyway.
///
/// Source: personality(2), `ADDR_NO_RANDOMIZE`; a thread's own, which the
/// programs that it starts inherit.
///
/// # Errors
/// The errors of `start`.
pub fn fixed<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = personality::get().and_then(|before| {
        personality::set(before | Persona::ADDR_NO_RANDOMIZE)?;
        Ok(before)
    });
    let started = start();
    match before {
        Ok(before) => {
            personality::set(before).ok();
        }
        Err(error) => {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| tracing::debug!(%error, "address randomisation stays on"));
        }
    }
    started
}
