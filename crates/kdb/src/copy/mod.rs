//! Rows of kdbs in other kdbs: converted, merged, split; and compared.

pub(crate) mod convert;
pub(crate) mod cursor;
pub(crate) mod diff;
pub(crate) mod error;
pub(crate) mod merge;
pub(crate) mod split;
pub(crate) mod transfer;
