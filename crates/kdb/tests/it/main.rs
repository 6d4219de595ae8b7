//! Tests of both layouts, a full disk, and damaged files. The integration tests
//! cover other readers, and tests that take minutes.

mod awkward;
mod dense;
mod determinism;
mod faults;
mod hostile;
mod limits;
mod merge;
mod parts;
mod random;
mod repair;
mod support;
mod user;
