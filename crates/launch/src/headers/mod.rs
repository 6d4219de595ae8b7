//! Precompiled headers: made before the commands that use them, once for many.

mod built_names;
mod exposed_names;
mod precompiled;
mod prepare;
mod recipe;

pub use prepare::HeaderOptions;
pub(crate) use prepare::{Headers, UsedHeader, groups};
