//! How far the work on a file has come, for whoever shows it.

/// How far the work on a file has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Rows done, of those that are read.
    pub rows: u64,
    /// Rows in all; 0 where that is not known.
    pub total: u64,
    /// Whether both count pages instead: while a repair looks for rows, of
    /// which nobody knows how many there are.
    pub pages: bool,
}

impl Progress {
    pub(crate) fn rows(rows: u64, total: u64) -> Self {
        Self { rows, total, pages: false }
    }
}
