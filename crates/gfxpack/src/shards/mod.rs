//! A stored plan on several machines: written once, run in parts by whatever
//! engine a site has, and put together to the bytes that one machine would
//! make.

pub(crate) mod build;
pub(crate) mod merge;
pub(crate) mod ninja;
mod outbox;
mod run;
pub(crate) mod slurm;
pub(crate) mod state;
pub(crate) mod stored;
mod words;

pub(crate) use merge::MergeError;
pub(crate) use outbox::Outbox;
pub(crate) use run::{Run, say_refused};
pub(crate) use stored::Stored;
