//! Signs with the user's gpg, and checks signatures against a key file.
//!
//! gpg and not a library: keys stay where they are kept, on a card or with an
//! agent too, and what package managers check was made by what they know.

mod clear_text;
mod error;
mod gpg;
mod keyring;
mod secret_keys;
mod signer;

pub use error::{KeyFlaw, SigningError};
pub use keyring::Keyring;
pub use signer::Signer;

pub(crate) use clear_text::clear_text;
pub(crate) use keyring::ClearSigned;
