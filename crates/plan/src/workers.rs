//! Who does the same to many things: this crate starts no threads.

/// Does the same to every one of many items.
pub trait Workers: Sync {
    /// The results in the order of the items, however they come about.
    fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R>;
}

/// One after another, on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct InTurn;

impl Workers for InTurn {
    fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
        items.iter().map(work).collect()
    }
}
