//! One compiler at a time for each key within this process: the others wait
//! for its result.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use gfxpack_model::KernelKey;

use crate::answer::CodeObject;
use crate::lock;
use crate::os::{self, Process};

/// The keys that are being compiled.
#[derive(Default)]
pub(crate) struct Flights {
    keys: Mutex<HashMap<KernelKey, Arc<Flight>>>,
}

struct Flight {
    thread: ThreadId,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Compiling,
    Done(CodeObject),
    /// The compiler failed or panicked: somebody else may try.
    Failed,
}

/// What a thread has to do about a key.
pub(crate) enum Turn<'a> {
    /// Compile it. The others wait until this is landed or dropped.
    Compile(Landing<'a>),
    /// Nothing: another thread has just compiled it.
    Done(CodeObject),
    /// Compile it, and nobody waits: waiting took too long, or would take
    /// forever.
    Alone,
}

/// The duty to tell those who wait. It is the parent's if the compiler forks,
/// and its child comes back too.
pub(crate) struct Landing<'a> {
    process: Process,
    flights: &'a Flights,
    key: KernelKey,
    flight: Arc<Flight>,
}

impl Flights {
    /// Waits up to `wait` for a thread that compiles the key, or becomes it.
    pub(crate) fn join(&self, key: &KernelKey, wait: Duration) -> Turn<'_> {
        let deadline = Instant::now().checked_add(wait);
        loop {
            let mut keys = lock(&self.keys);
            let Some(flight) = keys.get(key).cloned() else {
                let flight = Arc::new(Flight {
                    thread: thread::current().id(),
                    state: Mutex::new(State::Compiling),
                    changed: Condvar::new(),
                });
                keys.insert(key.clone(), Arc::clone(&flight));
                let (process, key) = (os::process(), key.clone());
                return Turn::Compile(Landing { process, flights: self, key, flight });
            };
            drop(keys);
            // The compiler asks for the key that it is to compile.
            if flight.thread == thread::current().id() {
                return Turn::Alone;
            }
            let mut state = lock(&flight.state);
            while let State::Compiling = *state {
                let left = deadline
                    .map_or(wait, |deadline| deadline.saturating_duration_since(Instant::now()));
                if left.is_zero() {
                    return Turn::Alone;
                }
                let woken = flight.changed.wait_timeout(state, left);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            if let State::Done(code_object) = &*state {
                return Turn::Done(code_object.clone());
            }
        }
    }
}

impl Landing<'_> {
    /// Gives the result to those who wait.
    pub(crate) fn land(self, code_object: &CodeObject) {
        self.finish(State::Done(code_object.clone()));
    }

    fn finish(&self, state: State) {
        if self.process != os::process() {
            return;
        }
        lock(&self.flights.keys).remove(&self.key);
        *lock(&self.flight.state) = state;
        self.flight.changed.notify_all();
    }
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let is_mine = self.process == os::process();
        if is_mine && matches!(*lock(&self.flight.state), State::Compiling) {
            self.finish(State::Failed);
        }
    }
}
