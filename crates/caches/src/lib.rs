//! The caches that GPU compilers and libraries keep for a user: where each is
//! by its tool's own rules, what is in it, how to switch it off, and how to
//! clear it without harm.
//!
//! - [`Surroundings`] are what the rules depend on: variables and the user.
//! - [`known()`] lists the caches, with their places and switches.
//! - [`Place::scan`] tells what is in a place, and recognises what is the
//!   tool's; whatever it does not recognise is never touched.
//! - [`Clearing`] judges an entry and removes it; [`Versions`] says which
//!   MIOpen's are meant.
//! - [`Switch`] is a variable that switches a cache off, [`Move`] one that puts
//!   it elsewhere, and [`Shell`] the shell that is told so.
//!
//! `docs/caches.md` tells users the same. This crate knows file names and
//! locks; it knows no kernel and no kdb, and nothing of gfxpack's own cache.
//!
//! ```
//! use gfxpack_caches::{Surroundings, known};
//!
//! let ada = Surroundings::new([("HOME", "/srv/ada")], None);
//! let names: Vec<_> = known(&ada).iter().map(|cache| cache.name).collect();
//! assert!(names.contains(&"miopen") && names.contains(&"pocl"), "{names:?}");
//! ```

mod clear;
mod clock;
mod destination;
mod entry;
mod known;
mod live;
mod moves;
mod shell;
mod surroundings;
mod switch;
mod version;

pub use clear::{Clearing, Kept, RemoveError};
pub use clock::now;
pub use destination::Destination;
pub use entry::{CacheEntry, Scan};
pub use known::{Cache, NAMES, Place, known};
pub use moves::Move;
pub use shell::Shell;
pub use surroundings::{Surroundings, VARIABLES};
pub use switch::{Switch, SwitchedOff};
pub use version::{MiopenVersion, Versions};
