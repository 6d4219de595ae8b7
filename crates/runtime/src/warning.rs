//! Warnings: their texts, each once per file, and who is told.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WarningClass {
    /// No kdb is installed for the device.
    MissingSystemKdb,
    /// A file is less than 512 bytes: most likely a Git LFS pointer.
    TooSmall,
    /// A file is no SQLite file, or a damaged one, or holds a damaged kernel.
    Corrupt,
    /// The operating system does not let the file be read.
    Unreadable,
    /// The file has other tables or columns.
    WrongSchema,
    /// The file is in WAL mode where that can't be read.
    WalMode,
    /// The file holds code for other devices, or no code.
    WrongTarget,
    /// Another program keeps the file locked.
    Busy,
    /// The user's cache is not where it should be, or nowhere.
    UserPlace,
    /// A file or directory belongs to somebody else or others may write to it.
    Untrusted,
    /// A compiled kernel could not be saved.
    NotStored,
}

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What it is about.
    pub class: WarningClass,
    /// The file or directory.
    pub file: PathBuf,
    /// The whole text as it is printed, without a newline at its end. The
    /// warning for a missing system kdb has two lines, all others one.
    pub text: String,
}

/// Who is told of warnings.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum WarningSink {
    /// Standard error, each warning once per process and file.
    #[default]
    Stderr,
    /// A function of the caller's, each warning once per cache and file. It
    /// may be called from any thread that uses the cache.
    Callback(Arc<dyn Fn(&Warning) + Send + Sync>),
    /// [`tracing`], level `WARN`, each warning once per process and file.
    Tracing,
    /// Nobody.
    Silent,
}

impl fmt::Debug for WarningSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stderr => "Stderr",
            Self::Callback(_) => "Callback",
            Self::Tracing => "Tracing",
            Self::Silent => "Silent",
        })
    }
}
