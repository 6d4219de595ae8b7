//! The caches that GPU compilers and libraries keep for a user: where each is
//! by its tool's own rules, what is in it, how to switch it off, and how to
//! clear it without harm.
//!
//! - [`Surroundings`] are what the rules depend on: platform, variables, user.
//! - [`known()`] lists the caches, with their places and switches.
//! - [`Place::scan`] tells what is in a place, and recognises what is the
//!   tool's; whatever it does not recognise is never touched.
//! - [`Clearing`] judges an entry and removes it.
//!
//! `docs/caches.md` tells users the same. This crate knows file names and
//! locks; it knows no kernel and no kdb, and nothing of gfxpack's own cache.

mod clear;
mod clock;
mod entry;
mod known;
mod live;
mod surroundings;

pub use clear::{Clearing, Kept, RemoveError};
pub use clock::now;
pub use entry::{Entry, Scan};
pub use known::{Cache, NAMES, Place, known};
pub use live::OpenFiles;
pub use surroundings::{Platform, Surroundings, VARIABLES};
