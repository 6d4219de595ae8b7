//! A plan as files: a header with the common properties of jobs, and one short line for each job.
//! docs/plan-format.md describes both.

mod check;
mod lines;
mod read;
#[cfg(test)]
mod tests;
mod tree;
mod write;

pub use self::lines::{FORMAT, Group, Header, Rows, StoredError, StoredKdb, StoredToolchain};
pub use read::{Jobs, read};
pub use tree::{SourceTrees, Tree, TreeEntry, TreeKind, TreeLookup};
pub use write::{WriteError, Written, write_jobs};
