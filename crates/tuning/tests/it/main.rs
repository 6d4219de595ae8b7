//! Tuning databases as files: merging, reading back, and general properties.

mod merge;
mod properties;
