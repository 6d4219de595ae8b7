//! Values that a process made by `fork` must not take over from its parent:
//! mutexes that may be held by threads that do not exist in the child,
//! connections, locks.

use std::mem;

use once_cell::race::OnceBox;

use crate::process::{self, Process};

/// A value that each process creates on first use. The parent's value is
/// neither used nor dropped.
///
/// No call waits for a lock, so a child continues even if a thread of its
/// parent held one during the fork.
pub(crate) struct PerProcess<T> {
    first: OnceBox<Node<T>>,
}

/// The value of one process. `next` holds the value of a child process, which
/// has a copy of this node.
struct Node<T> {
    process: Process,
    /// `None` only while it is dropped.
    value: Option<T>,
    next: OnceBox<Node<T>>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceBox::new() }
    }

    /// This process's value. If there is none yet, `make` is called with the
    /// parent's. Threads that call this at the same time may all run `make`;
    /// one result is kept.
    pub(crate) fn get(&self, make: impl FnOnce(Option<&T>) -> T) -> &T {
        let process = process::process();
        let (mut last, mut place) = (None, &self.first);
        while let Some(node) = place.get() {
            (last, place) = (Some(node), &node.next);
        }
        let node = match last {
            Some(node) if node.process == process => node,
            _ => place.get_or_init(|| {
                let value = Some(make(last.and_then(|node| node.value.as_ref())));
                Box::new(Node { process, value, next: OnceBox::new() })
            }),
        };
        node.value.as_ref().expect("it is there until the node is dropped")
    }
}

impl<T> Drop for Node<T> {
    fn drop(&mut self) {
        if self.process != process::process() {
            mem::forget(self.value.take());
        }
    }
}
