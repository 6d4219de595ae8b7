//! Precompiled headers, each made once for many commands before these run.

mod beginning;
mod built_names;
mod exposed_names;
mod first_include;
mod precompiled;
mod prepare;
mod recipe;

pub use prepare::HeaderOptions;
pub(crate) use prepare::{HeaderMaker, UsedHeader, groups};
