//! Jobs that run on a remote-execution service: its requests and answers as values. The protocol is
//! not known here.

mod action;
mod runner;
mod workers;

pub use self::workers::{
    Action, ActionOutcome, Content, InputFile, InputRoot, RemoteError, RemoteWorkers,
};
pub(crate) use runner::{RemoteContext, RemoteOutcome};
