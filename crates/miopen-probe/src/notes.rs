//! Notes of the library's requests, in the form of the module `protocol`.

use std::collections::{HashMap, HashSet};
use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use gfxpack_model::probe_line::line;
use gfxpack_standin::{Event, Key, Recorder};

/// The exit status of a process that has more notes than there is room for.
pub(crate) const FULL: i32 = 99;

/// The destination of notes: whole lines, one after the other.
pub(crate) trait NoteSink: Sync {
    /// Appends a line; `false` if there is no room.
    fn append(&self, line: &[u8]) -> bool;
}

/// Writes notes, after [`begin`] was called.
#[derive(Default)]
pub(crate) struct NoteRecorder {
    open: OnceLock<&'static dyn NoteSink>,
    noted: Mutex<NotedKeys>,
}

/// The notes that this process has already written.
#[derive(Debug, Default)]
struct NotedKeys {
    numbers: HashMap<Key, usize>,
    /// Functions recorded in the current step.
    functions: HashSet<(Option<usize>, Vec<u8>)>,
}

/// The notebook of this process.
pub(crate) static NOTEBOOK: OnceLock<NoteRecorder> = OnceLock::new();

/// The notebook as a recorder of the stand-ins.
pub(crate) fn recorder() -> &'static NoteRecorder {
    NOTEBOOK.get_or_init(NoteRecorder::default)
}

/// Starts writing notes, in this process.
pub(crate) fn begin(paper: &'static dyn NoteSink) {
    let first = recorder().open.set(paper).is_ok();
    assert!(first, "a process works on one problem");
}

/// Writes a line.
pub(crate) fn note(fields: &[&[u8]]) {
    let notebook = recorder();
    let noted = notebook.noted.lock().unwrap_or_else(PoisonError::into_inner);
    notebook.write(fields);
    drop(noted);
}

/// Writes the beginning of a step.
pub(crate) fn step(name: &str, direction: char) {
    let mut noted = recorder().noted.lock().unwrap_or_else(PoisonError::into_inner);
    noted.functions.clear();
    recorder().write(&[b"step", name.as_bytes(), direction.to_string().as_bytes()]);
}

impl NoteRecorder {
    /// The caller must hold the lock on `noted`.
    fn write(&self, fields: &[&[u8]]) {
        let Some(paper) = self.open.get() else { return };
        if !paper.append(&line(fields)) {
            process::exit(FULL);
        }
    }

    /// The number of a key, which is written when the key is seen first.
    fn number(&self, noted: &mut NotedKeys, key: &Key) -> usize {
        if let Some(number) = noted.numbers.get(key) {
            return *number;
        }
        let number = noted.numbers.len();
        noted.numbers.insert(key.clone(), number);
        self.write(&[b"key", number.to_string().as_bytes(), &key.name, &key.arguments]);
        number
    }
}

impl Recorder for NoteRecorder {
    fn record(&self, event: Event<'_>) {
        if self.open.get().is_none() {
            return;
        }
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = &mut *noted;
        match event {
            Event::Asked(key) | Event::Found(key) | Event::Missed(key) => {
                let word: &[u8] = match event {
                    Event::Asked(_) => b"asked",
                    Event::Found(_) => b"found",
                    _ => b"missed",
                };
                let number = self.number(noted, key);
                self.write(&[word, number.to_string().as_bytes()]);
            }
            Event::Function { key, name, found } => {
                let number = key.map(|key| self.number(noted, key));
                let word: &[u8] = if found { b"function" } else { b"lacks" };
                if noted.functions.insert((number, name.to_vec())) {
                    let number = number.map_or("-".to_owned(), |number| number.to_string());
                    self.write(&[word, number.as_bytes(), name]);
                }
            }
            Event::Compile(what) => self.write(&[b"compile", what]),
            // Programs are compiled only for other libraries.
            Event::Compiled { .. } => {}
            Event::Unanswered(what) => self.write(&[b"unanswered", what.as_bytes()]),
        }
    }
}
