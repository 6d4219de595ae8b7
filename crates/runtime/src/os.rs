//! Values from the C library: whether the program has more rights than its
//! caller, and the user's home directory.
#![expect(unsafe_code, reason = "calls the C library's functions")]

use std::path::PathBuf;

/// Whether the program has rights that its caller lacks: it is set-user-ID or
/// set-group-ID, or has file capabilities.
///
/// Source: Linux, getauxval(3), `AT_SECURE`.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the function takes any number, and reads what the kernel gave the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The home directory of the effective user in the password database.
pub(crate) fn home_of_user() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok()??;
    Some(user.dir).filter(|home| home.is_absolute())
}
