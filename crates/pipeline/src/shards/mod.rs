//! A stored plan on several machines: written once, run in parts by whatever
//! engine a site has, and merged into the same bytes that one machine would make.

pub mod build;
pub mod manifest_files;
pub mod merge;
pub mod ninja;
mod output;
mod run;
mod script_args;
pub mod slurm;
mod source_check;
mod source_trees;
pub mod state;
pub mod stored;
pub mod submission;

pub use output::JobNote;
