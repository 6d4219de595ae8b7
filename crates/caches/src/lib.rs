//! The caches that GPU compilers and libraries keep for a user: where each is
//! by its tool's own rules, what it contains, how to switch it off, and how to
//! clear it safely.
//!
//! - [`UserEnvironment`] are the inputs of these rules: variables and the user.
//! - [`known()`] lists the caches, with their places and switches.
//! - [`CacheDirectory::scan`] lists a place and recognises the tool's entries; others
//!   are never touched.
//! - [`CacheCleaner`] decides whether an entry may be removed, and removes it;
//!   [`Versions`] selects versions of MIOpen.
//! - [`Switch`] is a variable that switches a cache off, [`LocationVariable`] one that
//!   moves it, and [`Shell`] the shell for which lines are written.
//!
//! `docs/caches.md` is the guide for users. This crate knows file names and
//! locks. It knows nothing of kernels, kdbs, or gfxpack's own cache.
//!
//! ```
//! use gfxpack_caches::{UserEnvironment, known};
//!
//! let ada = UserEnvironment::new([("HOME", "/srv/ada")], None);
//! let names: Vec<_> = known(&ada).iter().map(|cache| cache.name).collect();
//! assert!(names.contains(&"miopen") && names.contains(&"pocl"), "{names:?}");
//! ```

mod clear;
mod clock;
mod destination;
mod entry;
mod known;
mod live;
mod location_variable;
mod shell;
mod switch;
mod user_environment;
mod version;

pub use clear::{CacheCleaner, KeepReason, RemoveError};
pub use clock::now;
pub use destination::Destination;
pub use entry::{CacheEntry, Scan};
pub use known::{Cache, CacheDirectory, NAMES, known};
pub use location_variable::LocationVariable;
pub use shell::Shell;
pub use switch::{Switch, SwitchedOff};
pub use user_environment::UserEnvironment;
pub use version::{MiopenVersion, Versions};
