//! What a repair could not save.

use std::fmt;

use gfxpack_model::KernelKey;

/// A row that could not be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Its key, where that is known.
    pub key: Option<KernelKey>,
    /// Its number, or that of its code object, where the key is not known.
    pub row: Option<i64>,
    /// The page that it stands in, where the key is not known.
    pub page: Option<u32>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, row, page, reason } = self;
        match (key, row, page) {
            (Some(key), ..) => write!(f, "{key}: {reason}"),
            (None, Some(row), Some(page)) => write!(f, "row {row} on page {page}: {reason}"),
            (None, _, Some(page)) => write!(f, "on page {page}: {reason}"),
            (None, _, None) => f.write_str(reason),
        }
    }
}
