//! Precompiled headers, each made once for many commands before these run.

mod beginning;
mod first_include;
mod precompiled;
mod prepare;
mod recipe;
mod used_names;

pub(crate) use precompiled::PrecompiledHeader;
pub use prepare::HeaderOptions;
pub(crate) use prepare::{HeaderMaker, groups};
