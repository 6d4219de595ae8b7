//! Why a line of a log or a list can't be used.

use std::borrow::Cow;

/// Longest line that is parsed, in bytes: the largest key that a kdb accepts,
/// and the text before it.
pub const MAX_LINE_BYTES: usize = (1 << 20) + 4096;

/// The beginning of MIOpen's messages, after an optional prefix.
pub(crate) const BEGIN: &[u8] = b"MIOpen(";

const AS_WRITTEN: &str = "see whether the file is MIOpen's log, as it wrote it";

/// Why a line can't be used, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct LineError {
    /// The reason.
    pub why: Cow<'static, str>,
    /// What the user can do about it.
    pub hint: &'static str,
}

impl LineError {
    /// Another message begins before this one's end.
    pub const INTERLEAVED: Self = Self::new(
        "failed to find the message's end: another thread or process wrote into its line",
        "have each process write its own log; most keys are in it several times",
    );
    /// The line is not UTF-8.
    pub const NOT_UTF8: Self = Self::new("failed to read the key: it is not UTF-8", AS_WRITTEN);
    /// The name is missing, or can't be that of a source file.
    pub const NAME: Self = Self::new("failed to find the kernel's name", AS_WRITTEN);
    /// There are no arguments.
    pub const ARGS: Self = Self::new("failed to find the kernel's arguments", AS_WRITTEN);
    /// The text after `MIOpenDriver` is not one of its commands.
    pub const COMMAND: Self = Self::new(
        "failed to read the driver's command: it has shell syntax, as quotes, pipes or redirections",
        AS_WRITTEN,
    );
    /// The arguments do not end in a device: the line was cut.
    pub const DEVICE: Self = Self::new(
        "failed to find ` -mcpu=<device>` at the end of the arguments: the line is cut short",
        "see what cuts the log's lines: a terminal, or a limit of a log service",
    );

    /// An error whose reason is always the same.
    #[must_use]
    pub const fn new(why: &'static str, hint: &'static str) -> Self {
        Self { why: Cow::Borrowed(why), hint }
    }

    /// The line has more than [`MAX_LINE_BYTES`].
    #[must_use]
    pub fn too_long() -> Self {
        let why = format!("failed to read the line: it has more than {MAX_LINE_BYTES} bytes");
        Self { why: why.into(), hint: AS_WRITTEN }
    }
}
