//! The most data that a service accepts at once.

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;

/// The largest message that gRPC servers accept by default.
pub(super) const USUAL_BATCH: u64 = 4 << 20;

/// Room in a message for everything but content: names, and the call itself.
pub(super) const ROOM: u64 = 64 << 10;

/// The same for each blob.
pub(super) const ROOM_PER_BLOB: u64 = 256;

/// The most bytes of blobs in one call.
pub(super) fn batch_limit(cache: &api::CacheCapabilities) -> u64 {
    // 0 means no limit of its own; the protocol's limit still applies.
    let stated = u64::try_from(cache.max_batch_total_size_bytes).unwrap_or(0);
    let batch = if stated == 0 { USUAL_BATCH } else { stated.min(USUAL_BATCH) };
    batch.saturating_sub(ROOM).max(ROOM_PER_BLOB)
}
