//! Kdbs of both layouts, a full disk, and files that somebody damaged. What
//! foreign readers say, and what takes minutes, is asked by the integration tests.

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
