//! How many threads compress where nobody says it.

/// Threads a writer may use unless told otherwise: what the machine offers.
pub(super) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
