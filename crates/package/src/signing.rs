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
