//! What a run reports, as people and machines get it.

pub(crate) mod bar;
mod bars;
mod count;
mod failure_texts;
mod lines;
mod messages;
mod reporter;
mod view;

pub(crate) use reporter::Reporter;
