//! A plan as files: a header with the common properties of jobs, and one short line for each job.
//! docs/plan-format.md describes both.

mod check;
mod lines;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use self::lines::{Beside, FORMAT, Group, Header, Rows, StoredKdb, StoredToolchain};
pub use read::{Jobs, read};
pub use write::{Written, write_jobs};
