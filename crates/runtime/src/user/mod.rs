//! The user's kdb of one device: found, trusted, read and written.

mod ask_error;
mod damage;
mod file;
mod get;
mod snapshot;
mod store;
mod waiting;

pub(crate) use file::{UserFile, UserSettings};
