//! Fetches packages of Debian's archive, verified by the archive's signature,
//! and unpacks them into a directory without installing them.
//!
//! A suite's `InRelease` is signed by a key of the keyring. It contains the
//! digest of the list of packages, and that list contains the digests of the
//! packages. Only files that this chain covers are unpacked, so neither the
//! mirror nor the network needs to be trusted. A pinned package needs its own
//! digest alone.

mod archive;
mod download;
mod error;
mod lock;
mod mirror;
mod release;
mod sources;
mod suite;
mod unpack;
mod version;

pub use archive::{Archive, Options, Progress};
pub use download::sha256;
pub use error::DebianError;
pub use lock::{Lock, Pin};
pub use suite::{Package, Suite};
pub use version::Relation;

/// The keys that sign Debian's archive.
pub const KEYS: &[u8] = include_bytes!("../keyrings/debian-archive.pgp");
