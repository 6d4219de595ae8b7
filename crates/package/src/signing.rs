//! Signs with the user's gpg, and checks signatures with gpgv or sqv against a key file.
//!
//! It uses these programs instead of a library, so that keys stay where they are,
//! such as on a card or in an agent, and signatures are made and judged by the
//! programs that package managers know.

mod gpg;
mod keyring;
mod secret_keys;
mod signer;
mod weak_keys;

pub use keyring::Keyring;
pub(crate) use keyring::clear_signed;
pub use signer::Signer;
pub(crate) use weak_keys::packets;

use gfxpack_model::Result;

/// Signs bytes with a key.
pub trait Sign: Sync {
    /// The detached OpenPGP signature of `bytes`, in binary.
    ///
    /// # Errors
    /// The kind and the hint of what failed.
    fn detached(&self, bytes: &[u8]) -> Result<Vec<u8>>;
}
