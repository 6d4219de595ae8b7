//! Tuning databases as files: merged, and read back; and what holds of any.

mod merge;
mod properties;
