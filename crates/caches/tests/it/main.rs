//! Caches on disk: finding, measuring, and clearing them safely.

mod clear;
mod scan;
mod support;
