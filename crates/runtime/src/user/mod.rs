//! The user's kdb of one device: finding, checking, reading and writing it.

mod ask_error;
mod damage;
mod file;
mod get;
mod snapshot;
mod store;
mod waiting;

pub(crate) use file::UserFile;
