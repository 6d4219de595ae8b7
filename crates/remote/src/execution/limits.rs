//! How much a service takes at once.

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;

/// What gRPC servers take in one message where they do not say otherwise.
pub(super) const USUAL_BATCH: u64 = 4 << 20;

/// Of a message, for what is not content: names, and the call itself.
pub(super) const ROOM: u64 = 64 << 10;

/// The same for each blob.
pub(super) const ROOM_PER_BLOB: u64 = 256;

/// How much the server takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of blobs in one call.
    pub(super) batch: u64,
}

impl Limits {
    pub(crate) fn from_capabilities(cache: &api::CacheCapabilities) -> Self {
        // 0 is no limit of its own; that of the protocol stays.
        let stated = u64::try_from(cache.max_batch_total_size_bytes).unwrap_or(0);
        let batch = if stated == 0 { USUAL_BATCH } else { stated.min(USUAL_BATCH) };
        Self { batch: batch.saturating_sub(ROOM).max(ROOM_PER_BLOB) }
    }
}
