//! The exit codes of gfxpack's commands.

use crate::error::ErrorKind;

/// Everything was done.
pub const SUCCESS: u8 = 0;

/// All exit codes with their meaning, for the help and the documentation.
pub const MEANINGS: [(u8, &str); 8] = [
    (SUCCESS, "done"),
    (ErrorKind::Internal.exit_code(), "internal or environment error"),
    (ErrorKind::Usage.exit_code(), "wrong usage or input"),
    (
        ErrorKind::NotFound.exit_code(),
        "kernel not found (`lookup`, `kdb get`), no package (`install`), or no GPU (`install`, `detect`)",
    ),
    (
        ErrorKind::ShardIncomplete.exit_code(),
        "a shard is done and has refused kernels: running it again gives the same",
    ),
    (
        ErrorKind::Incomplete.exit_code(),
        "kernels could not be compiled or found, `package` was given a kdb that lacks kernels, MIOpen failed on problems, or rocFFT on plans",
    ),
    (
        ErrorKind::Unsound.exit_code(),
        "verification failed, `kdb diff --exit-code` found differences, `perfdb lint` found errors, `doctor` found a problem, or `cache verify` found damaged objects",
    ),
    (ErrorKind::Interrupted.exit_code(), "interrupted by a signal"),
];
