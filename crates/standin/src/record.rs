//! The requests of a library, passed to a recorder.

use std::sync::OnceLock;

/// The key in a lookup of a kernel database, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The column `kernel_name`.
    pub name: Vec<u8>,
    /// The column `kernel_args`.
    pub arguments: Vec<u8>,
}

/// A request of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A kernel for which the stand-in's database answered.
    Asked(&'a Key),
    /// A kernel that a real database contains.
    Found(&'a Key),
    /// A kernel that no real database contains.
    Missed(&'a Key),
    /// A function of a loaded object; its key is known if the object came from a database.
    Function {
        /// The key of the object.
        key: Option<&'a Key>,
        /// The function's name.
        name: &'a [u8],
        /// Whether the object has it, or may have it: the stand-in's objects have every function.
        found: bool,
    },
    /// A compiler that was started and refused, with its input.
    Compile(&'a [u8]),
    /// A program that hipRTC compiled to an object of the stand-in.
    Compiled {
        /// Its number, which the object contains.
        number: u64,
        /// Its source.
        source: &'a [u8],
        /// The options.
        options: &'a [&'a [u8]],
    },
    /// A query that no stand-in can answer.
    Unanswered(&'a str),
}

type Recorder = Box<dyn Fn(Event<'_>) + Send + Sync>;

static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// Sends all future events to a recorder, maybe from several threads at once; once for the process.
///
/// # Panics
/// If a recorder was already set.
pub fn set_recorder(recorder: impl Fn(Event<'_>) + Send + Sync + 'static) {
    assert!(RECORDER.set(Box::new(recorder)).is_ok(), "a recorder was set already");
}

pub(crate) fn record(event: Event<'_>) {
    if let Some(recorder) = RECORDER.get() {
        recorder(event);
    }
}
