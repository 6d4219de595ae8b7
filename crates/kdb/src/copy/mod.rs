//! Copies rows between kdbs (convert, merge, split), and compares kdbs.

pub(crate) mod convert;
pub(crate) mod cursor;
pub(crate) mod diff;
pub(crate) mod error;
pub(crate) mod merge;
pub(crate) mod split;
pub(crate) mod transfer;
