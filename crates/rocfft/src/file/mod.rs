//! Reading, writing, merging and verifying kernel-cache files.

pub(crate) mod error;
pub(crate) mod merge;
mod open;
pub(crate) mod read;
pub(crate) mod row;
pub(crate) mod verify;
pub(crate) mod write;
