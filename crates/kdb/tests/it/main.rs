//! Kdbs as others see them: Python's SQLite, bzip2 and MD5, a full disk, and
//! files that somebody damaged.

mod awkward;
mod dense;
mod determinism;
mod faults;
mod foreign;
mod hostile;
mod limits;
mod merge;
mod parts;
mod random;
mod repair;
mod support;
mod user;
