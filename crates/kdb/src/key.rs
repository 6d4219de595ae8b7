//! Checks which keys a kdb accepts.

use gfxpack_model::KernelKey;

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
