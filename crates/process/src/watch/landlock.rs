//! Whether the kernel can hold processes to what they may do.
#![expect(unsafe_code, reason = "makes a system call that no crate has a function for")]

/// The version of Landlock that this system's kernel has, from 1 on; `None`
/// where it has none or it is switched off.
///
/// Source: Linux, Documentation/userspace-api/landlock.rst,
/// `LANDLOCK_CREATE_RULESET_VERSION`.
#[must_use]
pub fn landlock_abi() -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        const VERSION: u32 = 1;
        let none = std::ptr::null::<libc::c_void>();
        // SAFETY: with this flag the call takes no attributes, and tells a
        // number.
        let version =
            unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
        u32::try_from(version).ok().filter(|&version| version > 0)
    }
    #[cfg(not(target_os = "linux"))]
    None
}
