//! The error of everything that only reports: what failed, whose fault it is, why, and what to do
//! about it. Where a caller acts on the reason, a crate has a type of its own.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;

/// A result with this error.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// Whose fault an error is; the numbers are exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ErrorKind {
    /// gfxpack or the machine failed.
    Internal = 1,
    /// The command line or an input is wrong.
    Usage = 2,
    /// There is no such kernel, no package, or no GPU.
    NotFound = 3,
    /// A shard is done, but some kernels could not be compiled. Running it again
    /// gives the same result.
    ShardIncomplete = 42,
    /// Not all that was asked for could be made: kernels are missing that could not
    /// be compiled or found, or MIOpen failed on problems.
    Incomplete = 100,
    /// A file or the cache did not pass verification, two
    /// kdbs differ, or something is wrong on this machine.
    Unsound = 101,
    /// The run was stopped by a signal.
    Interrupted = 130,
}

impl ErrorKind {
    /// The exit code of a command that ends with an error of this kind.
    pub const fn exit_code(self) -> u8 {
        self as u8
    }
}

/// An error for the user.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    parts: Vec<Error>,
}

impl Error {
    /// An error with this message, `failed to …` with the subject in backticks, and what the user
    /// can do about it.
    pub fn new(kind: ErrorKind, message: impl ToString, hint: impl ToString) -> Self {
        Self { hint: Some(hint.to_string()), ..Self::without_hint(kind, message) }
    }

    /// An error that leaves nothing to do.
    pub fn without_hint(kind: ErrorKind, message: impl ToString) -> Self {
        let message = message.to_string();
        Self { kind, message, hint: None, source: None, parts: Vec::new() }
    }

    /// An error in the command line or an input.
    pub fn usage(message: impl ToString, hint: impl ToString) -> Self {
        Self::new(ErrorKind::Usage, message, hint)
    }

    /// A failure of gfxpack or the machine.
    pub fn internal(message: impl ToString, hint: impl ToString) -> Self {
        Self::new(ErrorKind::Internal, message, hint)
    }

    /// The caller asked to stop.
    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted", "start it again")
    }

    /// The error of an `action`, a verb, on a file or directory.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let message = format!("failed to {action} `{}`", path.as_ref().display());
            let kind =
                if is_no_such_path(&source) { ErrorKind::Usage } else { ErrorKind::Internal };
            Self::new(kind, message, io_hint(&source)).caused_by(source)
        }
    }

    /// Several things that are wrong, each reported on its own; the first one's hint counts.
    pub fn of_parts(message: impl ToString, parts: Vec<Self>) -> Self {
        let hint = parts.first().and_then(|first| first.hint.clone());
        Self { hint, parts, ..Self::without_hint(ErrorKind::Usage, message) }
    }

    /// The same with its cause. In a text with all causes, one that the message ends with is not
    /// repeated.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// The same with another kind.
    #[must_use]
    pub fn of_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What is wrong each by itself; empty if this error is one thing.
    pub fn parts(&self) -> &[Self] {
        &self.parts
    }

    /// Whether the caller asked to stop.
    pub fn is_interrupted(&self) -> bool {
        self.kind == ErrorKind::Interrupted
    }

    /// Its direct cause, if that has this type.
    pub fn cause<E: StdError + 'static>(&self) -> Option<&E> {
        self.source.as_ref()?.downcast_ref()
    }

    /// The kind of the operating system's error that is its direct cause.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.cause().map(io::Error::kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// For an error that passes through a reader or a writer, where [`io::Error::downcast`] finds it.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

/// Whether the fault is in the path, not in the machine.
pub fn is_no_such_path(error: &io::Error) -> bool {
    use io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::InvalidInput
    )
}

/// What the user can do about a file that could not be read or written.
pub fn io_hint(error: &io::Error) -> &'static str {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "make room on that disk, or choose another directory (--cache-dir, --out); what is \
             compiled already is kept"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "check its permissions, or choose a path that you may use"
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "a file, or a broken link, is where a directory should be: name another path"
        }
        _ => "check the path",
    }
}

/// An error with its causes, on one line.
pub fn in_full(error: &dyn StdError) -> String {
    with_causes(error.to_string(), error)
}

/// `text` followed by the error's causes. A cause is left out if the message
/// before it already ends with it, as in some libraries.
pub fn with_causes(mut text: String, error: &dyn StdError) -> String {
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // SQLite's has a number before the words of the error that it causes.
        let words = cause_text.strip_prefix("Error code ").and_then(|it| it.split_once(": "));
        if !text.ends_with(words.map_or(&*cause_text, |(_, words)| words)) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_mentioned_once() {
        let error = |text| Error::without_hint(ErrorKind::Internal, text);
        let refused = |text| error(text).caused_by(error("refused"));
        let page = error("no page").caused_by(refused("no answer: refused"));
        assert_eq!(in_full(&page), "no page: no answer: refused");
        assert_eq!(with_causes("a".to_owned(), &page), "a: no answer: refused");
        assert_eq!(in_full(&error("alone")), "alone");
        assert_eq!(in_full(&error("bad").caused_by(error("Error code 11: bad"))), "bad");
        assert_eq!(in_full(&refused("no file `refused.txt`")), "no file `refused.txt`: refused");
    }

    #[test]
    fn a_missing_path_is_the_users_fault_and_a_full_disk_is_not() {
        let error = |kind: io::ErrorKind| Error::io("read", "/p")(kind.into());
        assert_eq!(error(io::ErrorKind::NotFound).kind(), ErrorKind::Usage);
        assert_eq!(error(io::ErrorKind::IsADirectory).kind(), ErrorKind::Usage);
        let full = error(io::ErrorKind::StorageFull);
        assert_eq!(full.kind(), ErrorKind::Internal);
        assert!(full.hint().is_some_and(|hint| hint.starts_with("make room")));
        assert_eq!(full.io_kind(), Some(io::ErrorKind::StorageFull));
        let denied = error(io::ErrorKind::PermissionDenied);
        assert!(denied.hint().is_some_and(|hint| hint.starts_with("check its permissions")));
        assert_eq!(full.to_string(), "failed to read `/p`");
    }
}
