//! The runtime beside MIOpen, as Python stands in for it, and on disks that fail
//! or are full. What needs no foreign program is with the crate.

mod failing_reads;
mod foreign;
mod full_disk;
mod judges;
#[expect(dead_code, reason = "the rest is for the crate's own tests")]
#[path = "../../../crates/runtime/tests/it/support.rs"]
mod support;
