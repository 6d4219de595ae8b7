//! What functions return.

/// What became of a call. Negative for what the caller did wrong or its
/// compiler failed with; gfxpack_last_error() then has it in words.
///
/// What is wrong with a cache's files never shows here: that is a miss.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was done; for a lookup: there is a kernel.
    Ok = 0,
    /// No file and not the memory holds the kernel. The lookup says why.
    Miss = 1,
    /// A pointer is null where it may not be.
    NullPointer = -1,
    /// A text is not UTF-8, a path not absolute, or a number none of those that
    /// are defined.
    InvalidArgument = -2,
    /// The target is not spelled as one.
    InvalidTarget = -3,
    /// The caller's compiler failed, or gave nothing.
    CompilerFailed = -4,
    /// There is a mistake in this library. It was kept from doing harm.
    Internal = -5,
}
