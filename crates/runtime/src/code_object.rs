//! Code objects as the cache returns them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes that a device loads. Cloning shares them.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeObject(Arc<Vec<u8>>);

impl CodeObject {
    /// Returns the bytes; copies them only if they are shared.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        Arc::try_unwrap(self.0).unwrap_or_else(|shared| shared.as_ref().clone())
    }
}

impl From<Vec<u8>> for CodeObject {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

impl Deref for CodeObject {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for CodeObject {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for CodeObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodeObject({} bytes)", self.len())
    }
}
