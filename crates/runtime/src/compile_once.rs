//! Lets only one thread of this process compile a key at a time. Others who
//! want the key wait for the result.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use gfxpack_model::KernelKey;

use crate::lookup::CodeObject;
use crate::mutex::lock;
use crate::process::{self, Process};

/// The keys that are being compiled now.
#[derive(Default)]
pub(crate) struct CompileOnce {
    keys: Mutex<HashMap<KernelKey, Arc<InProgress>>>,
}

struct InProgress {
    thread: ThreadId,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Compiling,
    Done(CodeObject),
    /// The compiler failed or panicked; another thread may try.
    Failed,
}

/// What a thread has to do for a key.
pub(crate) enum Role<'a> {
    /// Compile it. Other threads wait until this is fulfilled or dropped.
    Compile(Promise<'a>),
    /// Nothing: another thread has just compiled it.
    Done(CodeObject),
    /// Compile it, but no thread waits for the result: waiting for the other
    /// thread took too long, or would never end.
    Alone,
}

/// A promise of a result to waiting threads. If the compiler forks and its
/// child returns too, the promise stays with the parent.
pub(crate) struct Promise<'a> {
    process: Process,
    owner: &'a CompileOnce,
    key: KernelKey,
    in_progress: Arc<InProgress>,
    /// What the waiting threads get.
    result: State,
}

impl CompileOnce {
    /// Waits up to `wait` for the thread that compiles the key. If there is
    /// none, the calling thread becomes that thread.
    pub(crate) fn join(&self, key: &KernelKey, wait: Duration) -> Role<'_> {
        let deadline = Instant::now().checked_add(wait);
        loop {
            let mut keys = lock(&self.keys);
            let Some(in_progress) = keys.get(key).cloned() else {
                let in_progress = Arc::new(InProgress {
                    thread: thread::current().id(),
                    state: Mutex::new(State::Compiling),
                    changed: Condvar::new(),
                });
                keys.insert(key.clone(), Arc::clone(&in_progress));
                return Role::Compile(Promise {
                    process: process::process(),
                    owner: self,
                    key: key.clone(),
                    in_progress,
                    result: State::Failed,
                });
            };
            drop(keys);
            // The compiler requests the key that it is compiling.
            if in_progress.thread == thread::current().id() {
                return Role::Alone;
            }
            let mut state = lock(&in_progress.state);
            while let State::Compiling = *state {
                let left = deadline
                    .map_or(wait, |deadline| deadline.saturating_duration_since(Instant::now()));
                if left.is_zero() {
                    return Role::Alone;
                }
                let woken = in_progress.changed.wait_timeout(state, left);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            if let State::Done(code_object) = &*state {
                return Role::Done(code_object.clone());
            }
        }
    }
}

impl Promise<'_> {
    /// Passes the result to the waiting threads.
    pub(crate) fn fulfil(mut self, code_object: &CodeObject) {
        self.result = State::Done(code_object.clone());
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        if self.process != process::process() {
            return;
        }
        lock(&self.owner.keys).remove(&self.key);
        *lock(&self.in_progress.state) = mem::replace(&mut self.result, State::Failed);
        self.in_progress.changed.notify_all();
    }
}
