//! The runtime together with MIOpen, for which Python stands in, and on disks that fail or are full. Other
//! tests are in the crate.

mod failing_reads;
mod foreign;
mod full_disk;
#[expect(dead_code, reason = "the rest is for the crate's own tests")]
#[path = "../../../../crates/runtime/tests/it/support.rs"]
mod support;
