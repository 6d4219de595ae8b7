//! Tests of writing, reading and rejecting packages. Tests with dpkg, lintian,
//! rpm and tar are among the integration tests.

mod archives;
mod child;
mod faults;
mod read;
mod refusals;
mod same_bytes;
mod support;
mod wheels;
