//! The exit codes of gfxpack's commands.

use crate::error::ErrorKind;

/// Everything was done.
pub const SUCCESS: u8 = 0;
/// gfxpack or the machine failed.
pub const INTERNAL: u8 = 1;
/// The command line or an input is wrong.
pub const USAGE: u8 = 2;
/// There is no such kernel (`lookup`, `kdb get`, `kdb disasm`, `kdb symbols`), no
/// package (`install`), or no GPU (`install`, `detect`).
pub const NOT_FOUND: u8 = 3;
/// A shard is done and some of its kernels were refused: running it again
/// gives the same.
pub const SHARD_REFUSED: u8 = 42;
/// Kernels are missing that could not be compiled or found, MIOpen failed on
/// problems, or layers of a model are not resolved.
pub const REFUSED: u8 = 100;
/// A file or the cache did not pass verification, `kdb repair` lost rows, two kdbs
/// differ, or something is wrong on this machine.
pub const UNSOUND: u8 = 101;
/// Stopped by a signal.
pub const INTERRUPTED: u8 = 130;

impl ErrorKind {
    /// The exit code of a command that ends with such an error.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Internal => INTERNAL,
            Self::Usage => USAGE,
            Self::NotFound => NOT_FOUND,
            Self::Refused => REFUSED,
            Self::ShardRefused => SHARD_REFUSED,
            Self::Unsound => UNSOUND,
            Self::Interrupted => INTERRUPTED,
        }
    }
}
