//! The caches that GPU compilers and libraries keep for a user: where each is
//! by its tool's own rules, what it contains, how to switch it off, and how to
//! clear it safely.
//!
//! - [`UserEnvironment`] are the inputs of these rules: variables and the user.
//! - [`CACHES`] is the table of caches, with their places and switches.
//! - [`CacheDirectory::scan`] lists a place and recognises the tool's entries; others
//!   are never touched.
//! - [`CacheCleaner`] decides whether an entry may be removed, and removes it;
//!   [`Versions`] selects versions of MIOpen.
//! - [`Switch`] is a variable that switches a cache off, and [`Shell`] the shell for which
//!   lines are written.
//!
//! `docs/caches.md` is the guide for users. This crate knows file names and
//! locks. It knows nothing of kernels, kdbs, or gfxpack's own cache.
//!
//! ```
//! use gfxpack_caches::{CACHES, UserEnvironment};
//!
//! let ada = UserEnvironment::new([("HOME", "/srv/ada")], None);
//! let pocl = CACHES.iter().find(|cache| cache.name == "pocl").expect("it is known");
//! assert_eq!(pocl.directories(&ada)[0].dir.to_str(), Some("/srv/ada/.cache/pocl/kcache"));
//! ```

mod cache;
mod clear;
mod entry;
mod patterns;
mod shell;
mod table;
mod user_environment;
mod version;

pub use cache::{Cache, CacheDirectory, Place, Switch};
pub use clear::{CacheCleaner, KeepReason, now};
pub use entry::{CacheEntry, Scan};
pub use shell::{Shell, destination};
pub use table::CACHES;
pub use user_environment::UserEnvironment;
pub use version::{MiopenVersion, Versions};
