//! Applies a function to many items; this crate itself starts no threads.

/// Applies a function to many items.
pub trait Workers: Sync {
    /// The results in the order of the items, in whichever order they are computed.
    fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R>;
}

/// One item after another, on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct InTurn;

impl Workers for InTurn {
    fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
        items.iter().map(work).collect()
    }
}
