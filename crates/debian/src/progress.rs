//! The progress of fetching packages.

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A file is being fetched.
    Downloading {
        /// The file's name.
        file: &'a str,
        /// Number of bytes received so far.
        done: u64,
        /// Size of the file, in bytes.
        total: u64,
    },
    /// A package is being unpacked.
    Unpacking {
        /// The package's name.
        package: &'a str,
    },
    /// Another process is fetching, and this one waits for it.
    Waiting,
    /// Something is wrong, but the work continues.
    Warning(String),
}

/// Receives events, and may cancel the work.
pub trait Progress {
    /// Called for each event, often while a file is downloaded.
    fn event(&self, event: Event<'_>);

    /// Whether the user wants to cancel.
    fn is_cancelled(&self) -> bool {
        false
    }
}
