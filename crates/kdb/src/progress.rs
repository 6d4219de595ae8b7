//! Progress of the work on a file.

/// Progress of the work on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Rows done so far.
    pub rows: u64,
    /// Total number of rows; 0 if it is not known.
    pub total: u64,
    /// Whether both fields count pages instead, as while a repair searches for
    /// rows, whose number is not known.
    pub pages: bool,
}

impl Progress {
    pub(crate) fn rows(rows: u64, total: u64) -> Self {
        Self { rows, total, pages: false }
    }
}
