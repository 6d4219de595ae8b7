//! Reading, writing, merging and verifying kernel-cache files.

mod open;
pub(crate) mod read;
pub(crate) mod row;
pub(crate) mod verify;
pub(crate) mod write;
