//! The status that functions return.

/// The outcome of a call. Negative for errors of the caller or of its compiler;
/// gfxpack_last_error() then has the message.
///
/// Problems with a cache's files are never errors: they are misses.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Success; for a lookup: there is a kernel.
    Ok = 0,
    /// The kernel is neither in memory nor in any file. The lookup says why.
    Miss = 1,
    /// A pointer is null that must not be.
    NullPointer = -1,
    /// A text is not UTF-8, a path is not absolute, or a number is undefined.
    InvalidArgument = -2,
    /// The target can't be parsed.
    InvalidTarget = -3,
    /// The caller's compiler failed, or returned no code.
    CompilerFailed = -4,
    /// A bug in this library. The panic was caught.
    Internal = -5,
}
