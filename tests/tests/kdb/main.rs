//! Kdbs as others see them, and kdbs that are large. What needs neither is with
//! the crate.

mod foreign;
mod judges;
mod large;
mod layouts;
#[expect(dead_code, reason = "the rest is for the crate's own tests")]
#[path = "../../../crates/kdb/tests/it/support.rs"]
mod support;
