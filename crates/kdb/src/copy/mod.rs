//! Merges kdbs, and compares them.

pub(crate) mod cursor;
pub(crate) mod diff;
pub(crate) mod error;
pub(crate) mod merge;
