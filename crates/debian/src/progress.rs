//! What is told while packages are fetched.

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A file is being fetched.
    Downloading {
        /// Its name.
        file: &'a str,
        /// Bytes that are here.
        done: u64,
        /// Bytes that it has.
        total: u64,
    },
    /// A package is being unpacked.
    Unpacking {
        /// Its name.
        package: &'a str,
    },
    /// Another process fetches; this one waits.
    Waiting,
    /// Something is not as it should be, and was done all the same.
    Warning(String),
}

/// Hears what happens, and may stop it.
pub trait Progress {
    /// Something happened. Called often while a file is fetched.
    fn event(&self, event: Event<'_>);

    /// Whether the user wants it to stop.
    fn is_cancelled(&self) -> bool {
        false
    }
}
