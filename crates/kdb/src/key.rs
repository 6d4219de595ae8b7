//! Checks which keys a kdb accepts, and computes the check value stored beside
//! them.

use gfxpack_model::KernelKey;
#[cfg(feature = "tools")]
use md5::{Digest as _, Md5};

use crate::error::WriteError;
use crate::schema::MAX_KEY_BYTES;

/// Checks that MIOpen can find the key.
///
/// # Errors
/// [`WriteError::Key`] or [`WriteError::KeyTooLong`].
pub(crate) fn check_key(key: &KernelKey) -> Result<(), WriteError> {
    key.check_text()?;
    let size = key.kernel_name.len() + key.kernel_args.len();
    if size > MAX_KEY_BYTES {
        let name = key.kernel_name.chars().take(100).collect();
        return Err(WriteError::KeyTooLong { name, size });
    }
    Ok(())
}

/// The check value that the dense layout stores beside a key: the first eight
/// bytes of the MD5 of name, NUL and arguments.
#[cfg(feature = "tools")]
pub(crate) fn key_check(key: &KernelKey) -> [u8; 8] {
    let mut digest = Md5::new();
    digest.update(&key.kernel_name);
    digest.update([0]);
    digest.update(&key.kernel_args);
    digest.finalize()[..8].try_into().expect("16 bytes")
}
