//! Finds out whether the kernel can confine processes.
#![expect(unsafe_code, reason = "makes a system call that no crate has a function for")]

use std::sync::atomic::{AtomicBool, Ordering};

static SWITCHED_OFF: AtomicBool = AtomicBool::new(false);

/// Makes this process behave as if the kernel had no Landlock, for tests.
pub fn switch_off_landlock() {
    SWITCHED_OFF.store(true, Ordering::Relaxed);
}

/// The version of Landlock in this system's kernel, from 1 on; `None` if there is none or it is
/// switched off.
///
/// Source: Linux, Documentation/userspace-api/landlock.rst,
/// `LANDLOCK_CREATE_RULESET_VERSION`.
#[must_use]
pub fn landlock_abi() -> Option<u32> {
    if SWITCHED_OFF.load(Ordering::Relaxed) { None } else { access() }
}

fn access() -> Option<u32> {
    const VERSION: u32 = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag, the call takes no attributes, changes nothing and returns a number.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    u32::try_from(version).ok().filter(|&version| version > 0)
}
