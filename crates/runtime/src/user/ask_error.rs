//! Why a lookup in a user's kdb failed, and the resulting miss.

use std::sync::Arc;

use gfxpack_kdb::ReadError;

use crate::miss::MissReason;
use crate::trust::Untrusted;

/// Why a lookup in a file failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum AskError {
    Untrusted(#[from] Untrusted),
    Read(#[from] ReadError),
}

pub(super) fn missed_by(trouble: AskError) -> MissReason {
    match trouble {
        AskError::Untrusted(error) => MissReason::Untrusted(error),
        AskError::Read(error) => missed(error),
    }
}

/// The reason for a miss.
pub(super) fn missed(error: ReadError) -> MissReason {
    match error {
        error if error.is_absent() => MissReason::NoFile,
        error @ ReadError::Row { .. } => MissReason::Damaged(error),
        error => MissReason::Unreadable(Arc::new(error)),
    }
}
