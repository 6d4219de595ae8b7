//! Tests of writing and reading, a full disk, and damaged files. The integration tests
//! cover other readers, and tests that take minutes.

mod awkward;
mod determinism;
mod faults;
mod hostile;
mod limits;
mod merge;
mod random;
mod support;
mod user;
