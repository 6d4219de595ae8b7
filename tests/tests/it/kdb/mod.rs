//! Kdbs read and written by other programs, and large kdbs. Other tests are in the crate.

mod foreign;
mod large;
#[expect(dead_code, reason = "the rest is for the crate's own tests")]
#[path = "../../../../crates/kdb/tests/it/support.rs"]
mod support;
