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

/// All of them with their meaning, as the help and the documentation have it.
pub const MEANINGS: [(u8, &str); 8] = [
    (SUCCESS, "done"),
    (INTERNAL, "internal or environment error"),
    (USAGE, "wrong usage or input"),
    (
        NOT_FOUND,
        "kernel not found (`lookup`, `kdb get`, `kdb disasm`, `kdb symbols`), no package (`install`), or no GPU (`install`, `detect`)",
    ),
    (SHARD_REFUSED, "a shard is done and has refused kernels: running it again gives the same"),
    (
        REFUSED,
        "kernels could not be compiled or found, `package` was given a kdb that lacks kernels, MIOpen failed on problems, rocFFT on plans, or layers of a model are not resolved",
    ),
    (
        UNSOUND,
        "verification failed, `kdb repair` lost rows, `kdb diff --exit-code` found differences, `perfdb lint` found errors, `doctor` found a problem, or `cache verify` found damaged objects",
    ),
    (INTERRUPTED, "interrupted by a signal"),
];

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
