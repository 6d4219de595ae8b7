//! Options of a harvest.

use crate::error::HarvestError;

/// Options of a harvest.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// Called from any thread with the number of bytes read.
    pub read: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Called often to ask whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Options<'_> {
    /// # Errors
    /// [`HarvestError::Interrupted`].
    pub(crate) fn check(&self) -> Result<(), HarvestError> {
        match self.cancelled {
            Some(cancelled) if cancelled() => Err(HarvestError::Interrupted),
            _ => Ok(()),
        }
    }

    pub(crate) fn count(&self, bytes: u64) {
        if let Some(read) = self.read {
            read(bytes);
        }
    }
}
