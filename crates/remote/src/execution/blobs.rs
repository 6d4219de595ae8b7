//! The content-addressed store of a service. Missing blobs are sent, small ones together and large
//! ones as streams; received blobs are streams, and are hashed.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Mutex;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::google::bytestream::{ReadRequest, WriteRequest};
use gfxpack_compile::Content;
use gfxpack_model::Digest;
use tokio::sync::OnceCell;
use tonic::{Code, Status};
use uuid::Uuid;

use super::connection::{Connection, Purpose};
use super::tree::Blob;

/// The size of a stream's messages.
const CHUNK: usize = 1 << 20;
/// The most digests in one query.
const QUESTIONS: usize = 10_000;
/// Larger blobs are refused: no object is that large.
const MAX_READ: u64 = 2 << 30;

/// The largest message that gRPC servers accept by default.
const USUAL_BATCH: u64 = 4 << 20;

/// Room in a message for everything but content: names, and the call itself.
const ROOM: u64 = 64 << 10;

/// The same for each blob.
const ROOM_PER_BLOB: u64 = 256;

/// The most bytes of blobs in one call.
pub(super) fn batch_limit(cache: &api::CacheCapabilities) -> u64 {
    // 0 means no limit of its own; the protocol's limit still applies.
    let stated = u64::try_from(cache.max_batch_total_size_bytes).unwrap_or(0);
    let batch = if stated == 0 { USUAL_BATCH } else { stated.min(USUAL_BATCH) };
    batch.saturating_sub(ROOM).max(ROOM_PER_BLOB)
}

/// What is known about the service's store.
#[derive(Default)]
pub(crate) struct Blobs {
    /// The most bytes of blobs in one call, once the server's capabilities are known.
    pub(super) limit: OnceCell<u64>,
    /// Blobs that were found or uploaded in this run.
    present: Mutex<HashSet<Digest>>,
    /// Locked while shared blobs are sent, so that only one action sends them.
    sending: tokio::sync::Mutex<()>,
}

impl Blobs {
    fn limit(&self) -> u64 {
        *self.limit.get().expect("an action begins with the server's capabilities")
    }

    /// Forgets that blobs are present, since the server reports them missing.
    pub(crate) fn forget<'a>(&self, blobs: impl Iterator<Item = &'a Blob>) {
        let mut present = self.present.lock().expect("no panic inside");
        blobs.for_each(|blob| {
            present.remove(&blob.digest);
        });
    }

    fn unknown<'a>(&self, blobs: &'a [Blob]) -> Vec<&'a Blob> {
        let present = self.present.lock().expect("no panic inside");
        blobs.iter().filter(|blob| !present.contains(&blob.digest)).collect()
    }

    /// Sends those of these blobs that the service lacks.
    pub(crate) async fn send(
        &self,
        connection: &Connection,
        blobs: &[Blob],
        purpose: &Purpose,
    ) -> Result<(), Status> {
        if self.unknown(blobs).is_empty() {
            return Ok(());
        }
        let _sending = self.sending.lock().await;
        let unknown = self.unknown(blobs);
        for some in unknown.chunks(QUESTIONS) {
            let missing = missing(connection, some, purpose).await?;
            let (small, large): (Vec<&Blob>, Vec<&Blob>) = some
                .iter()
                .copied()
                .filter(|blob| missing.contains(&blob.digest))
                .partition(|blob| blob.size.saturating_add(ROOM_PER_BLOB) <= self.limit());
            for batch in self.batches(small) {
                self.send_batch(connection, &batch, purpose).await?;
            }
            for blob in large {
                connection.retry.call(|| send_stream(connection, blob, purpose)).await?;
            }
            let mut present = self.present.lock().expect("no panic inside");
            present.extend(some.iter().map(|blob| blob.digest));
        }
        Ok(())
    }

    /// Splits blobs into groups, each of which fits into one call.
    fn batches<'a>(&self, blobs: Vec<&'a Blob>) -> Vec<Vec<&'a Blob>> {
        let mut batches: Vec<Vec<&Blob>> = Vec::new();
        let mut room = 0;
        for blob in blobs {
            let size = blob.size + ROOM_PER_BLOB;
            match batches.last_mut() {
                Some(batch) if size <= room => batch.push(blob),
                _ => {
                    room = self.limit();
                    batches.push(vec![blob]);
                }
            }
            room = room.saturating_sub(size);
        }
        batches
    }

    /// Sends small blobs in one call, without a query before.
    pub(crate) async fn send_batch(
        &self,
        connection: &Connection,
        blobs: &[&Blob],
        purpose: &Purpose,
    ) -> Result<(), Status> {
        let requests = blobs.iter().map(|blob| {
            let data = read(&blob.content)?;
            Ok(api::batch_update_blobs_request::Request {
                digest: Some(blob.api()),
                data,
                ..Default::default()
            })
        });
        let request = api::BatchUpdateBlobsRequest {
            instance_name: connection.address.instance.clone(),
            requests: requests.collect::<io::Result<_>>().map_err(unreadable)?,
            digest_function: api::digest_function::Value::Sha256 as i32,
        };
        connection
            .retry
            .call(|| {
                let mut client = connection.cas();
                let request = connection.request(request.clone(), purpose);
                async move {
                    let answer = client.batch_update_blobs(request).await?.into_inner();
                    let failed = answer.responses.into_iter().filter_map(|one| one.status);
                    failed.into_iter().try_for_each(status)
                }
            })
            .await
    }
}

/// Fetches a blob and checks it. A missing one is [`Code::NotFound`], a damaged one
/// [`Code::DataLoss`].
pub(crate) async fn fetch(
    connection: &Connection,
    digest: &api::Digest,
    purpose: &Purpose,
) -> Result<Vec<u8>, Status> {
    if digest.size_bytes.try_into().unwrap_or(u64::MAX) > MAX_READ {
        return Err(Status::data_loss("a file of impossible size came back"));
    }
    connection.retry.call(|| fetch_stream(connection, digest, purpose)).await
}

/// Whether the bytes have the digest and size.
pub(crate) fn is_whole(digest: &api::Digest, bytes: &[u8]) -> bool {
    bytes.len() as i64 == digest.size_bytes && Digest::of(bytes).to_string() == digest.hash
}

fn unreadable(error: io::Error) -> Status {
    Status::failed_precondition(format!("an input can't be read: {error}"))
}

/// The status in an answer.
fn status(status: bazel_remote_apis::google::rpc::Status) -> Result<(), Status> {
    match Code::from(status.code) {
        Code::Ok => Ok(()),
        code => Err(Status::new(code, status.message)),
    }
}

async fn missing(
    connection: &Connection,
    blobs: &[&Blob],
    purpose: &Purpose,
) -> Result<HashSet<Digest>, Status> {
    let request = api::FindMissingBlobsRequest {
        instance_name: connection.address.instance.clone(),
        blob_digests: blobs.iter().map(|blob| blob.api()).collect(),
        digest_function: api::digest_function::Value::Sha256 as i32,
    };
    let answer = connection
        .retry
        .call(|| {
            let mut client = connection.cas();
            let request = connection.request(request.clone(), purpose);
            async move { client.find_missing_blobs(request).await }
        })
        .await?
        .into_inner();
    Ok(answer.missing_blob_digests.iter().filter_map(|digest| digest.hash.parse().ok()).collect())
}

async fn fetch_stream(
    connection: &Connection,
    digest: &api::Digest,
    purpose: &Purpose,
) -> Result<Vec<u8>, Status> {
    let name = format!("blobs/{}/{}", digest.hash, digest.size_bytes);
    let request =
        ReadRequest { resource_name: connection.address.resource(&name), ..Default::default() };
    let request = connection.open_ended(request, purpose);
    let mut stream = connection.bytes().read(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(part) = stream.message().await? {
        bytes.extend(part.data);
        if bytes.len() as i64 > digest.size_bytes {
            break;
        }
    }
    if is_whole(digest, &bytes) {
        Ok(bytes)
    } else {
        Err(Status::data_loss(format!("what came back for {} are other bytes", digest.hash)))
    }
}

async fn send_stream(
    connection: &Connection,
    blob: &Blob,
    purpose: &Purpose,
) -> Result<(), Status> {
    let name = format!("uploads/{}/blobs/{}/{}", Uuid::new_v4(), blob.digest, blob.size);
    let reader: Box<dyn Read + Send + Sync> = match &blob.content {
        Content::File(path) => Box::new(File::open(path).map_err(unreadable)?),
        Content::Bytes(bytes) => Box::new(io::Cursor::new(bytes.clone())),
    };
    let chunks =
        Chunks { name: connection.address.resource(&name), reader, sent: 0, size: blob.size };
    let request = connection.open_ended(tokio_stream::iter(chunks), purpose);
    let committed = connection.bytes().write(request).await?.into_inner().committed_size;
    if committed == blob.size as i64 {
        Ok(())
    } else {
        Err(Status::aborted(format!("{committed} of {} bytes were stored", blob.size)))
    }
}

/// The messages of a blob's stream.
struct Chunks {
    /// Sent with the first message.
    name: String,
    reader: Box<dyn Read + Send + Sync>,
    sent: u64,
    size: u64,
}

impl Iterator for Chunks {
    type Item = WriteRequest;

    fn next(&mut self) -> Option<WriteRequest> {
        if self.sent == self.size && self.name.is_empty() {
            return None;
        }
        let mut data = Vec::new();
        let part = CHUNK as u64;
        // If a file has become shorter, the stream ends early, and the server reports this.
        self.reader.by_ref().take(part.min(self.size - self.sent)).read_to_end(&mut data).ok()?;
        if data.is_empty() && self.sent < self.size {
            return None;
        }
        let write_offset = self.sent as i64;
        self.sent += data.len() as u64;
        let finish_write = self.sent == self.size;
        let resource_name = std::mem::take(&mut self.name);
        Some(WriteRequest { resource_name, write_offset, finish_write, data })
    }
}

fn read(content: &Content) -> io::Result<Vec<u8>> {
    match content {
        Content::File(path) => std::fs::read(path),
        Content::Bytes(bytes) => Ok(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_split_and_finished() {
        for size in [0, 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
            let reader = Box::new(io::Cursor::new(bytes.clone()));
            let chunks = Chunks { name: "n".into(), reader, sent: 0, size: size as u64 };
            let sent: Vec<WriteRequest> = chunks.collect();
            let whole: Vec<u8> = sent.iter().flat_map(|part| part.data.clone()).collect();
            assert_eq!(whole, bytes);
            let ends = sent.iter().filter(|part| part.finish_write).count();
            assert!(ends == 1 && sent.last().unwrap().finish_write, "{size}");
            assert!(sent[0].resource_name == "n" && sent[0].write_offset == 0);
            assert!(sent[1..].iter().all(|part| part.resource_name.is_empty()));
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_not_finished() {
        let reader = Box::new(io::Cursor::new(vec![0; 10]));
        let sent: Vec<_> = Chunks { name: "n".into(), reader, sent: 0, size: 11 }.collect();
        assert!(sent.iter().all(|part| !part.finish_write));
    }

    #[test]
    fn batches_stay_below_the_limit() {
        let limit = batch_limit(&api::CacheCapabilities {
            max_batch_total_size_bytes: (ROOM + 10_000) as i64,
            ..Default::default()
        });
        let blobs: Vec<Blob> =
            (0..40).map(|number| Blob::bytes(vec![number; usize::from(number) * 200])).collect();
        let store = Blobs { limit: OnceCell::new_with(Some(limit)), ..Blobs::default() };
        let batches = store.batches(blobs.iter().collect());
        assert!(batches.len() > 1);
        for batch in &batches {
            let size: u64 = batch.iter().map(|blob| blob.size + ROOM_PER_BLOB).sum();
            assert!(size <= 10_000, "{size}");
        }
        assert_eq!(batches.concat().len(), blobs.len());
        assert!(batch_limit(&api::CacheCapabilities::default()) < USUAL_BATCH);
    }
}
