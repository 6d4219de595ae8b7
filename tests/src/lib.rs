//! Code that the integration tests share.

pub mod archive;
pub mod casd;
pub mod fat;
pub mod gate;
pub mod hip_stand_in;
pub mod miopen;
pub mod project;
pub mod terminal;
