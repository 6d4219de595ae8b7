//! The progress of a run, for people and machines.

mod bar;
mod bars;
mod lines;
mod reporter;
mod view;

pub(crate) use reporter::Reporter;
