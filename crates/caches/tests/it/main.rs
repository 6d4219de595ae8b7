//! Caches as they lie on disk: found, measured, and cleared without harm.

mod clear;
mod scan;
mod support;
mod versions;
