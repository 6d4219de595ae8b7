//! The user's kdb of one device: finding, checking, reading and writing it.

mod damage;
mod error;
mod file;
mod get;
mod store;
mod waiting;

pub(crate) use error::UserError;
pub(crate) use file::UserFile;
