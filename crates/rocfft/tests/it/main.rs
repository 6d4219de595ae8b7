//! Tests of the public interface: writing, reading, verifying and merging files; files with any
//! damaged byte, and files by other programs; plans and logs as text.

mod damage;
mod logs;
mod merge;
mod plans;
mod round_trip;
mod support;
