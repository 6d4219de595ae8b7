//! A remote-execution service in memory, whose "compiler" writes an object that
//! names its arguments.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use bazel_remote_apis::build::bazel::remote::execution::v2::{self as api, *};
use bazel_remote_apis::google::bytestream::byte_stream_server::{ByteStream, ByteStreamServer};
use bazel_remote_apis::google::bytestream::*;
use bazel_remote_apis::google::longrunning::*;
use bazel_remote_apis::google::{protobuf, rpc};
use gfxpack_model::Digest as Sha256;
use prost::Message;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::Stream;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

type Answer<T> = Result<Response<T>, Status>;
type Reply<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) blobs: HashMap<String, Vec<u8>>,
    pub(crate) results: HashMap<String, ActionResult>,
    /// Executions end with these statuses in their answers.
    pub(crate) ends: VecDeque<i32>,
    /// How often each call was made.
    pub(crate) calls: BTreeMap<&'static str, usize>,
    /// Largest batch of blobs, in bytes.
    pub(crate) largest_batch: usize,
    /// The header that every call must have.
    pub(crate) token: Option<&'static str>,
    pub(crate) instance: String,
    /// Commands that were run, and the last one's platform.
    pub(crate) runs: Vec<Command>,
    pub(crate) no_sha256: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Stand(Arc<Mutex<State>>);

/// The largest batch that the service accepts.
pub(crate) const MAX_BATCH: i64 = 100_000;

/// A running service; ends when it is dropped.
pub(crate) struct Running {
    pub(crate) stand: Stand,
    pub(crate) port: u16,
    _runtime: Runtime,
}

pub(crate) fn start(stand: &Stand, tls: Option<ServerTlsConfig>) -> Running {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls).unwrap();
    }
    let router = server
        .add_service(capabilities_server::CapabilitiesServer::new(stand.clone()))
        .add_service(action_cache_server::ActionCacheServer::new(stand.clone()))
        .add_service(content_addressable_storage_server::ContentAddressableStorageServer::new(
            stand.clone(),
        ))
        .add_service(execution_server::ExecutionServer::new(stand.clone()))
        .add_service(ByteStreamServer::new(stand.clone()));
    runtime.spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
    Running { stand: stand.clone(), port, _runtime: runtime }
}

impl Stand {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn calls(&self, name: &str) -> usize {
        self.lock().calls.get(name).copied().unwrap_or(0)
    }

    /// Counts a call, which fails if its header is missing.
    fn called<T>(
        &self,
        name: &'static str,
        instance: Option<&str>,
        request: &Request<T>,
    ) -> Result<MutexGuard<'_, State>, Status> {
        let mut state = self.lock();
        *state.calls.entry(name).or_default() += 1;
        let metadata = request.metadata();
        if let Some(token) = state.token
            && metadata.get("authorization").is_none_or(|value| value != token)
        {
            return Err(Status::unauthenticated("who are you?"));
        }
        assert!(metadata.contains_key("build.bazel.remote.execution.v2.requestmetadata-bin"));
        if instance.is_some_and(|instance| instance != state.instance) {
            return Err(Status::invalid_argument("no such instance"));
        }
        Ok(state)
    }
}

impl State {
    pub(crate) fn put(&mut self, bytes: Vec<u8>) -> api::Digest {
        let digest = digest(&bytes);
        self.blobs.insert(digest.hash.clone(), bytes);
        digest
    }

    fn read(&self, hash: &str) -> Result<Vec<u8>, Status> {
        self.blobs.get(hash).cloned().ok_or_else(|| Status::not_found("gone"))
    }

    fn message<T: Message + Default>(&self, digest: Option<&api::Digest>) -> Option<T> {
        T::decode(&self.blobs.get(&digest?.hash)?[..]).ok()
    }

    /// Whether a whole tree is stored.
    fn has(&self, root: Option<&api::Digest>) -> bool {
        self.message::<Directory>(root).is_some_and(|directory| {
            let file =
                |file: &FileNode| self.blobs.contains_key(&file.digest.as_ref().unwrap().hash);
            directory.files.iter().all(file)
                && directory.directories.iter().all(|node| self.has(node.digest.as_ref()))
        })
    }

    fn execute(&mut self, request: &ExecuteRequest) -> ExecuteResponse {
        let failed = |code: i32| ExecuteResponse {
            status: Some(rpc::Status {
                code,
                message: "as asked for".into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let hash = request.action_digest.clone().unwrap().hash;
        if !request.skip_cache_lookup
            && let Some(result) = self.results.get(&hash)
        {
            let result = Some(result.clone());
            return ExecuteResponse { result, cached_result: true, ..Default::default() };
        }
        if let Some(code) = self.ends.pop_front() {
            return failed(code);
        }
        let action: Option<Action> = self.message(request.action_digest.as_ref());
        let command = action.as_ref().and_then(|action| {
            let whole = self.has(action.input_root_digest.as_ref());
            self.message::<Command>(action.command_digest.as_ref()).filter(|_| whole)
        });
        // buildbox-casd reports missing inputs in this way.
        let (Some(_), Some(command)) = (action, command) else { return failed(13) };
        let digest = Some(self.put(object(&command.arguments)));
        let path = command.output_paths[0].clone();
        let output_files = vec![OutputFile { path, digest, ..Default::default() }];
        let result = ActionResult { output_files, ..Default::default() };
        self.runs.push(command);
        self.results.insert(hash, result.clone());
        ExecuteResponse { result: Some(result), ..Default::default() }
    }
}

/// The object of its compiler; large if the last argument is a number.
pub(crate) fn object(arguments: &[String]) -> Vec<u8> {
    let size = arguments.last().and_then(|arg| arg.parse().ok()).unwrap_or(0_usize);
    let mut bytes = format!("object of {arguments:?}").into_bytes();
    bytes.resize(bytes.len().max(size), 7);
    bytes
}

pub(crate) fn digest(bytes: &[u8]) -> api::Digest {
    api::Digest { hash: Sha256::of(bytes).to_string(), size_bytes: bytes.len() as i64 }
}

fn stream<T: Send + 'static>(messages: Vec<Result<T, Status>>) -> Reply<T> {
    Box::pin(tokio_stream::iter(messages))
}

#[tonic::async_trait]
impl capabilities_server::Capabilities for Stand {
    async fn get_capabilities(
        &self,
        request: Request<GetCapabilitiesRequest>,
    ) -> Answer<ServerCapabilities> {
        let instance = request.get_ref().instance_name.clone();
        let state = self.called("GetCapabilities", Some(&instance), &request)?;
        let sha256 = digest_function::Value::Sha256 as i32;
        let known = if state.no_sha256 { Vec::new() } else { vec![sha256] };
        Ok(Response::new(ServerCapabilities {
            cache_capabilities: Some(CacheCapabilities {
                digest_functions: known,
                max_batch_total_size_bytes: MAX_BATCH,
                ..Default::default()
            }),
            execution_capabilities: Some(ExecutionCapabilities {
                digest_function: sha256,
                exec_enabled: true,
                ..Default::default()
            }),
            ..Default::default()
        }))
    }
}

#[tonic::async_trait]
impl action_cache_server::ActionCache for Stand {
    async fn get_action_result(
        &self,
        request: Request<GetActionResultRequest>,
    ) -> Answer<ActionResult> {
        let instance = request.get_ref().instance_name.clone();
        let state = self.called("GetActionResult", Some(&instance), &request)?;
        let hash = request.into_inner().action_digest.unwrap().hash;
        let known = state.results.get(&hash).cloned();
        known.map(Response::new).ok_or_else(|| Status::not_found("not known"))
    }

    async fn update_action_result(
        &self,
        _: Request<UpdateActionResultRequest>,
    ) -> Answer<ActionResult> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl content_addressable_storage_server::ContentAddressableStorage for Stand {
    async fn find_missing_blobs(
        &self,
        request: Request<FindMissingBlobsRequest>,
    ) -> Answer<FindMissingBlobsResponse> {
        let state = self.called("FindMissingBlobs", None, &request)?;
        let mut missing_blob_digests = request.into_inner().blob_digests;
        missing_blob_digests.retain(|digest| !state.blobs.contains_key(&digest.hash));
        Ok(Response::new(FindMissingBlobsResponse { missing_blob_digests }))
    }

    async fn batch_update_blobs(
        &self,
        request: Request<BatchUpdateBlobsRequest>,
    ) -> Answer<BatchUpdateBlobsResponse> {
        let mut state = self.called("BatchUpdateBlobs", None, &request)?;
        let request = request.into_inner();
        let size = request.requests.iter().map(|one| one.data.len()).sum();
        state.largest_batch = state.largest_batch.max(size);
        for one in request.requests {
            let named = one.digest.unwrap();
            if state.put(one.data) != named {
                return Err(Status::invalid_argument("it is not what it is called"));
            }
        }
        Ok(Response::new(BatchUpdateBlobsResponse::default()))
    }

    async fn batch_read_blobs(
        &self,
        request: Request<BatchReadBlobsRequest>,
    ) -> Answer<BatchReadBlobsResponse> {
        let state = self.called("BatchReadBlobs", None, &request)?;
        let mut responses = Vec::new();
        for digest in request.into_inner().digests {
            let data = state.read(&digest.hash);
            let code = data.as_ref().err().map_or(0, |status| status.code() as i32);
            responses.push(batch_read_blobs_response::Response {
                digest: Some(digest),
                data: data.unwrap_or_default(),
                status: Some(rpc::Status { code, ..Default::default() }),
                ..Default::default()
            });
        }
        Ok(Response::new(BatchReadBlobsResponse { responses }))
    }

    type GetTreeStream = Reply<GetTreeResponse>;

    async fn get_tree(&self, _: Request<GetTreeRequest>) -> Answer<Self::GetTreeStream> {
        Err(Status::unimplemented(""))
    }

    async fn split_blob(&self, _: Request<SplitBlobRequest>) -> Answer<SplitBlobResponse> {
        Err(Status::unimplemented(""))
    }

    type GetChunkMappingStream = Reply<GetChunkMappingResponse>;

    async fn get_chunk_mapping(
        &self,
        _: Request<GetChunkMappingRequest>,
    ) -> Answer<Self::GetChunkMappingStream> {
        Err(Status::unimplemented(""))
    }

    async fn splice_blob(&self, _: Request<SpliceBlobRequest>) -> Answer<SpliceBlobResponse> {
        Err(Status::unimplemented(""))
    }

    async fn register_chunk_mapping(
        &self,
        _: Request<Streaming<RegisterChunkMappingRequest>>,
    ) -> Answer<RegisterChunkMappingResponse> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl execution_server::Execution for Stand {
    type ExecuteStream = Reply<Operation>;

    async fn execute(&self, request: Request<ExecuteRequest>) -> Answer<Self::ExecuteStream> {
        let instance = request.get_ref().instance_name.clone();
        let mut state = self.called("Execute", Some(&instance), &request)?;
        let request = request.into_inner();
        let name = format!("operations/{}", state.calls["Execute"]);
        let begun = Operation { name: name.clone(), ..Default::default() };
        let response = state.execute(&request);
        Ok(Response::new(stream(vec![Ok(begun), Ok(done(name, &response))])))
    }

    type WaitExecutionStream = Reply<Operation>;

    async fn wait_execution(
        &self,
        _: Request<WaitExecutionRequest>,
    ) -> Answer<Self::WaitExecutionStream> {
        Err(Status::unimplemented(""))
    }
}

fn done(name: String, response: &ExecuteResponse) -> Operation {
    let any = protobuf::Any {
        type_url: "type.googleapis.com/build.bazel.remote.execution.v2.ExecuteResponse".into(),
        value: response.encode_to_vec(),
    };
    let result = Some(operation::Result::Response(any));
    Operation { name, done: true, result, ..Default::default() }
}

#[tonic::async_trait]
impl ByteStream for Stand {
    type ReadStream = Reply<ReadResponse>;

    async fn read(&self, request: Request<ReadRequest>) -> Answer<Self::ReadStream> {
        let state = self.called("Read", None, &request)?;
        let name = request.into_inner().resource_name;
        let instance = state.instance.clone();
        let rest = name.strip_prefix(&instance).unwrap().trim_start_matches('/');
        let hash = rest.split('/').nth(1).unwrap().to_owned();
        let bytes = state.read(&hash)?;
        let parts = bytes.chunks(10_000).map(|part| Ok(ReadResponse { data: part.to_vec() }));
        Ok(Response::new(stream(parts.collect())))
    }

    async fn write(&self, request: Request<Streaming<WriteRequest>>) -> Answer<WriteResponse> {
        drop(self.called("Write", None, &request)?);
        let mut stream = request.into_inner();
        let (mut name, mut bytes, mut finished) = (String::new(), Vec::new(), false);
        while let Some(part) = stream.message().await? {
            assert_eq!(part.write_offset, bytes.len() as i64);
            if name.is_empty() {
                name = part.resource_name;
            }
            bytes.extend(part.data);
            finished |= part.finish_write;
        }
        let committed_size = bytes.len() as i64;
        let named = digest(&bytes);
        let mut state = self.lock();
        let prefix = format!("{}/uploads/", state.instance);
        let end = format!("/blobs/{}/{committed_size}", named.hash);
        let sound = name.starts_with(prefix.trim_start_matches('/')) && name.ends_with(&end);
        if !sound || !finished {
            return Err(Status::invalid_argument("it is not what it is called"));
        }
        state.put(bytes);
        Ok(Response::new(WriteResponse { committed_size }))
    }

    async fn query_write_status(
        &self,
        _: Request<QueryWriteStatusRequest>,
    ) -> Answer<QueryWriteStatusResponse> {
        Err(Status::unimplemented(""))
    }
}
