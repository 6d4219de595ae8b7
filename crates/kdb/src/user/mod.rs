//! The user's kdb: a file that several processes, including MIOpen, read and
//! write at the same time.

mod busy_handler;
mod connect;
pub(crate) mod damage;
pub(crate) mod snapshot;
mod transaction;
mod usage;
mod user_kdb;

pub use user_kdb::{UserKdb, UserOptions};
