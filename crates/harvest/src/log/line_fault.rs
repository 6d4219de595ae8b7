//! Errors of lines of a log.

/// Longest line that is parsed, in bytes: the largest key that a kdb accepts,
/// and the text before it.
pub const MAX_LINE_BYTES: usize = (1 << 20) + 4096;

/// The beginning of MIOpen's messages, after an optional prefix.
pub(crate) const BEGIN: &[u8] = b"MIOpen(";

/// Why a line about a kernel can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Another message begins before this one's end.
    #[error("failed to find the message's end: another thread or process wrote into its line")]
    Interleaved,
    /// The line has more than [`MAX_LINE_BYTES`].
    #[error("failed to read the line: it has more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The line is not UTF-8.
    #[error("failed to read the key: it is not UTF-8")]
    NotUtf8,
    /// The name is missing, or can't be that of a source file.
    #[error("failed to find the kernel's name")]
    Name,
    /// There are no arguments.
    #[error("failed to find the kernel's arguments")]
    Args,
    /// The text after `MIOpenDriver` is not one of its commands.
    #[error(
        "failed to read the driver's command: it has shell syntax, as quotes, pipes or redirections"
    )]
    Command,
    /// The arguments do not end in a device: the line was cut.
    #[error("failed to find ` -mcpu=<device>` at the end of the arguments: the line is cut short")]
    Device,
}

impl LogError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Interleaved => {
                "have each process write its own log; most keys are in it several times"
            }
            Self::TooLong | Self::NotUtf8 | Self::Name | Self::Args | Self::Command => {
                "see whether the file is MIOpen's log, as it wrote it"
            }
            Self::Device => {
                "see what cuts the log's lines: a terminal, or a limit of a log service"
            }
        }
    }
}
