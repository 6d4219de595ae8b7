//! A stored plan on several machines: written once, run in parts by whatever
//! engine a site has, and merged into the same bytes that one machine would make.

pub mod build;
pub mod merge;
mod run;
pub mod state;
pub mod stored;
