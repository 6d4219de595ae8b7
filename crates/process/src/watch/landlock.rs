//! Confines programs by the kernel before they start.
#![expect(unsafe_code, reason = "makes a system call that no crate has a function for")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use landlock::{
    ABI, AccessFs, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    path_beneath_rules,
};

static SWITCHED_OFF: AtomicBool = AtomicBool::new(false);

/// The first version that also stops files from being truncated. An older kernel stops what it
/// can.
const RIGHTS: ABI = ABI::V3;

/// Makes this process behave as if the kernel had no Landlock, for tests.
pub fn switch_off_landlock() {
    SWITCHED_OFF.store(true, Ordering::Relaxed);
}

/// The version of Landlock in this system's kernel, from 1 on; `None` if there is none or it is
/// switched off.
///
/// Source: Linux, Documentation/userspace-api/landlock.rst,
/// `LANDLOCK_CREATE_RULESET_VERSION`.
pub fn landlock_abi() -> Option<u32> {
    const VERSION: u32 = 1;
    if SWITCHED_OFF.load(Ordering::Relaxed) {
        return None;
    }
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag, the call takes no attributes, changes nothing and returns a number.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    u32::try_from(version).ok().filter(|&version| version > 0)
}

/// Calls `start` such that the program that it starts, and all that this one starts, may write only
/// to these paths and below them, and to `/dev/null`. That holds for programs without libraries
/// too. If the kernel has no Landlock, they are not confined.
///
/// # Errors
/// The errors of `start`, and if no thread can be made.
pub fn confined<T: Send>(
    writable: &[PathBuf],
    start: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    if landlock_abi().is_none() {
        return start();
    }
    // The kernel confines single threads, and what they start.
    let confined_start = || {
        // Where this process is in too many domains already, theirs still hold.
        restrict(writable)
            .map_err(|error| tracing::debug!(%error, "a program is not confined"))
            .ok();
        start()
    };
    thread::scope(|scope| {
        let running = thread::Builder::new().spawn_scoped(scope, confined_start)?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn restrict(writable: &[PathBuf]) -> Result<RestrictionStatus, RulesetError> {
    let rights = AccessFs::from_write(RIGHTS);
    let null = [Path::new("/dev/null")];
    Ruleset::default()
        .handle_access(rights)?
        .create()?
        .add_rules(path_beneath_rules(writable, rights))?
        .add_rules(path_beneath_rules(null, AccessFs::WriteFile | AccessFs::Truncate))?
        .restrict_self()
}
