//! What several suites share.

pub(crate) mod archive;
pub(crate) mod casd;
pub(crate) mod fat;
pub(crate) mod gate;
pub(crate) mod hip_stand_in;
pub(crate) mod kdb;
pub(crate) mod miopen;
pub(crate) mod project;
pub(crate) mod terminal;
