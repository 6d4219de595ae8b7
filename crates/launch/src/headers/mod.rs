//! Precompiled headers, each made once for many commands before these run.

mod built_names;
mod exposed_names;
mod precompiled;
mod prepare;
mod recipe;

pub use prepare::HeaderOptions;
pub(crate) use prepare::{HeaderMaker, UsedHeader, groups};
