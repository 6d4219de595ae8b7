//! Notes of the library's requests, in the form of the module `protocol`.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write as _;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use gfxpack_model::probe_line::line;
use gfxpack_standin::{Event, Key};

/// The exit status of a process that has more notes than there is room for.
pub(crate) const FULL: i32 = 99;
/// More than any problem has.
const MAX_BYTES: usize = 256 << 20;

/// Where notes go, after [`begin`] was called.
static NOTES: OnceLock<File> = OnceLock::new();
static WRITTEN: AtomicUsize = AtomicUsize::new(0);
static NOTED: LazyLock<Mutex<Noted>> = LazyLock::new(Mutex::default);

/// The notes that this process has already written.
#[derive(Debug, Default)]
struct Noted {
    numbers: HashMap<Key, usize>,
    /// Functions recorded in the current step.
    functions: HashSet<(Option<usize>, Vec<u8>)>,
}

/// Who holds the lock may write.
fn noted() -> MutexGuard<'static, Noted> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts appending notes to a file, in this process.
pub(crate) fn begin(notes: File) {
    assert!(NOTES.set(notes).is_ok(), "a process works on one problem");
}

/// Writes a line.
pub(crate) fn note(fields: &[&[u8]]) {
    let _lock = noted();
    write(fields);
}

/// Writes the beginning of a step.
pub(crate) fn step(name: &str, direction: char) {
    let mut noted = noted();
    noted.functions.clear();
    write(&[b"step", name.as_bytes(), direction.to_string().as_bytes()]);
}

/// Writes what the stand-ins record.
pub(crate) fn record(event: Event<'_>) {
    if NOTES.get().is_none() {
        return;
    }
    let mut noted = noted();
    match event {
        Event::Asked(key) | Event::Found(key) | Event::Missed(key) => {
            let word: &[u8] = match event {
                Event::Asked(_) => b"asked",
                Event::Found(_) => b"found",
                _ => b"missed",
            };
            let number = noted.number(key);
            write(&[word, number.to_string().as_bytes()]);
        }
        Event::Function { key, name, found } => {
            let number = key.map(|key| noted.number(key));
            let word: &[u8] = if found { b"function" } else { b"lacks" };
            if noted.functions.insert((number, name.to_vec())) {
                let number = number.map_or("-".to_owned(), |number| number.to_string());
                write(&[word, number.as_bytes(), name]);
            }
        }
        Event::Compile(what) => write(&[b"compile", what]),
        // Programs are compiled only for other libraries.
        Event::Compiled { .. } => {}
        Event::Unanswered(what) => write(&[b"unanswered", what.as_bytes()]),
    }
}

/// The caller must hold the lock of [`noted`].
fn write(fields: &[&[u8]]) {
    let Some(mut notes) = NOTES.get() else { return };
    let line = line(fields);
    let before = WRITTEN.fetch_add(line.len(), Ordering::Relaxed);
    if before + line.len() > MAX_BYTES || notes.write_all(&line).is_err() {
        process::exit(FULL);
    }
}

impl Noted {
    /// The number of a key, which is written when the key is seen first.
    fn number(&mut self, key: &Key) -> usize {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = self.numbers.len();
        self.numbers.insert(key.clone(), number);
        write(&[b"key", number.to_string().as_bytes(), &key.name, &key.arguments]);
        number
    }
}
