//! What a run reports, as people and machines get it.

pub(crate) mod bar;
mod bars;
mod lines;
mod reporter;
mod view;

pub(crate) use reporter::Reporter;
