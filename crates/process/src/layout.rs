//! Programs whose memory lies the same in every run.

use std::io;
use std::sync::Once;

use nix::sys::personality::{self, Persona};

/// Starts a program without address randomisation, which it hands on to what
/// it starts itself. A kernel or container that does not allow that starts it
/// all the same.
///
/// Source: personality(2), `ADDR_NO_RANDOMIZE`; a thread's own, which the
/// programs that it starts inherit.
///
/// # Errors
/// Those of `start`.
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
