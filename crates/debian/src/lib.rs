//! Fetches packages of Debian's archive, verified by the archive's signature,
//! and unpacks them into a directory without installing them.
//!
//! A suite's `InRelease` is signed by a key of the keyring. It contains the
//! digest of the list of packages, and that list contains the digests of the
//! packages. Only files that this chain covers are unpacked, so neither the
//! mirror nor the network needs to be trusted.
//!
//! ```
//! // The keys that sign the archive accept nothing that they did not sign.
//! let keys = gfxpack_debian::Keyring::debian()?;
//! assert!(keys.verify(b"a list that no one signed", 0).is_err());
//! # Ok::<(), gfxpack_debian::SignatureError>(())
//! ```

mod archive;
mod deb822;
mod download;
mod error;
mod lock;
mod mirror;
mod openpgp;
mod progress;
mod release;
mod sources;
mod suite;
mod unpack;
mod version;

pub use self::progress::{Event, Progress};
pub use archive::{Archive, Options};
pub use download::sha256;
pub use error::DebianError;
pub use lock::{Lock, Pin};
pub use mirror::Proxies;
pub use openpgp::{Keyring, SignatureError};
pub use suite::{Package, Suite};
pub use version::Relation;

impl Keyring {
    /// The keys that sign Debian's archive.
    ///
    /// # Errors
    /// Never with the keyring that is part of gfxpack.
    pub fn debian() -> Result<Self, SignatureError> {
        Self::read(include_bytes!("../keyrings/debian-archive.pgp"))
    }
}
