//! What a library asked for, handed to whoever listens.

use std::sync::OnceLock;

/// What a kernel database is asked for, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The column `kernel_name`.
    pub name: Vec<u8>,
    /// The column `kernel_args`.
    pub arguments: Vec<u8>,
}

/// Something that a library asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A kernel that the stand-in's database answered.
    Asked(&'a Key),
    /// A kernel that a real database holds.
    Found(&'a Key),
    /// A kernel that no real database holds.
    Missed(&'a Key),
    /// A function of a loaded object; its key is known where a database
    /// answered with the object.
    Function {
        /// The key that the object was found by.
        key: Option<&'a Key>,
        /// The function's name.
        name: &'a [u8],
        /// Whether the object has it, or may have it: the stand-in's objects
        /// have every function.
        found: bool,
    },
    /// A compiler that was started, and refused: what it was asked.
    Compile(&'a [u8]),
    /// A program that hipRTC was given, and that was compiled to an object of
    /// the stand-in.
    Compiled {
        /// Its number, which the object holds.
        number: u64,
        /// Its text.
        source: &'a [u8],
        /// The options.
        options: &'a [&'a [u8]],
    },
    /// A question that no stand-in has an answer to.
    Unanswered(&'a str),
}

/// Who listens. May be called from several threads at once.
pub trait Recorder: Sync {
    /// Takes note of an event.
    fn record(&self, event: Event<'_>);
}

static RECORDER: OnceLock<&'static dyn Recorder> = OnceLock::new();

/// Sends all events there from now on, once for the process.
///
/// # Panics
/// Where a recorder was set already.
pub fn set_recorder(recorder: &'static dyn Recorder) {
    assert!(RECORDER.set(recorder).is_ok(), "a recorder was set already");
}

pub(crate) fn record(event: Event<'_>) {
    if let Some(recorder) = RECORDER.get() {
        recorder.record(event);
    }
}

/// Notes that a compiler was asked for something, and makes nothing.
pub(crate) fn refuse(what: &[u8]) {
    record(Event::Compile(what));
}
