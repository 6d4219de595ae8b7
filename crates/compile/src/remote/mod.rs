//! Jobs that run elsewhere: what is asked of a remote-execution service and
//! what it answers, as values. How they travel is not known here.

mod action;
mod headers;
mod judge;
mod runner;
mod workers;

pub use self::workers::{
    Action, ActionOutcome, Content, InputFile, InputRoot, RemoteWorkers, ToolchainSource,
};
pub(crate) use runner::{RemoteContext, RemoteOutcome};
