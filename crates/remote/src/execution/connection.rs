//! The connection to a service: one HTTP/2 connection for everything, the metadata of every call,
//! and the server's capabilities.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::google::bytestream::byte_stream_client::ByteStreamClient;
use bazel_remote_apis::google::longrunning::operations_client::OperationsClient;
use gfxpack_model::{Error, with_causes};
use prost::Message;
use tonic::metadata::{
    AsciiMetadataKey, AsciiMetadataValue, BinaryMetadataKey, BinaryMetadataValue,
};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use uuid::Uuid;

use super::RemoteOptions;
use super::address::Address;
use super::blobs::batch_limit;
use super::retry::Retry;

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// How long a server that was never reached is tried: more would hide a wrong address.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// How often a silent connection is checked, and how long the check may take. A machine that was
/// switched off sends nothing.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const KEEP_ALIVE_LIMIT: Duration = Duration::from_secs(20);
/// How long a call with a short answer may take.
const CALL_LIMIT: Duration = Duration::from_secs(120);
/// Bytes that may be sent before the receiver must acknowledge them.
const WINDOW: u32 = 8 << 20;
/// Larger messages are refused.
const MAX_MESSAGE: usize = 128 << 20;
const METADATA: &str = "build.bazel.remote.execution.v2.requestmetadata-bin";

/// A connection, made when it is first needed and again when it is lost.
pub(crate) struct Connection {
    pub(crate) address: Address,
    channel: Channel,
    headers: Vec<(AsciiMetadataKey, AsciiMetadataValue)>,
    /// Identifies this run in the server's logs.
    invocation: String,
    pub(crate) retry: Retry,
}

/// What a call is for: an action's digest, a kernel's name, a target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Purpose {
    pub(crate) action: String,
    pub(crate) name: String,
    pub(crate) target: String,
}

impl Connection {
    pub(crate) fn new(options: &RemoteOptions) -> Result<Self, Error> {
        let address = options.address.clone();
        let headers = options
            .headers
            .iter()
            .map(|(key, value)| Some((key.to_lowercase().parse().ok()?, value.parse().ok()?)))
            .collect::<Option<_>>()
            .ok_or_else(|| address.unusable("a header can't be sent", "see --remote-header"))?;
        let wrong = |error: tonic::transport::Error| {
            let reason = std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), |source| source.to_string());
            address.unusable(reason, "check the address and the certificates")
        };
        let mut endpoint = Endpoint::from_shared(address.uri.clone())
            .map_err(wrong)?
            .connect_timeout(CONNECT_LIMIT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_LIMIT)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW);
        if address.tls {
            endpoint = endpoint.tls_config(tls(options)?).map_err(wrong)?;
        }
        Ok(Self {
            channel: endpoint.connect_lazy(),
            headers,
            invocation: Uuid::new_v4().to_string(),
            retry: Retry::new(options.wait_limit),
            address,
        })
    }

    /// Queries the server's capabilities. Returns the most bytes of blobs in one call.
    ///
    /// # Errors
    /// If the server can't be reached, or lacks a capability.
    pub(crate) async fn learn(&self, cache_only: bool) -> Result<u64, Error> {
        let request = api::GetCapabilitiesRequest { instance_name: self.address.instance.clone() };
        let purpose = Purpose::default();
        let answer = Retry::new(FIRST_WAIT.min(self.retry.wait_limit))
            .call(|| {
                let mut client = self.capabilities();
                let request = self.request(request.clone(), &purpose);
                async move { client.get_capabilities(request).await }
            })
            .await
            .map_err(|status| self.failed(&status))?
            .into_inner();
        let sha256 = api::digest_function::Value::Sha256 as i32;
        let unable =
            |reason: &str| self.address.unusable(reason, "use another service or instance");
        let cache = answer.cache_capabilities.unwrap_or_default();
        if !cache.digest_functions.contains(&sha256) {
            return Err(unable("it does not know SHA-256"));
        }
        if !cache_only {
            let execution = answer.execution_capabilities.unwrap_or_default();
            let functions = &execution.digest_functions;
            let knows = execution.digest_function == sha256 || functions.contains(&sha256);
            if !execution.exec_enabled {
                return Err(unable("it runs nothing; --remote-cache-only uses what it has"));
            }
            if !knows {
                return Err(unable("its workers do not know SHA-256"));
            }
        }
        Ok(batch_limit(&cache))
    }

    /// The error for a call that finally failed.
    pub(crate) fn failed(&self, status: &tonic::Status) -> Error {
        use tonic::Code;
        let hint = match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => {
                "it wants to know who you are: see --remote-header and --remote-client-cert"
            }
            Code::Unimplemented => "it is no remote-execution service, or lacks a part of one",
            Code::NotFound | Code::InvalidArgument => "check the instance's name in the address",
            _ => {
                "check that it runs and can be reached; what is built already is kept, and without \
                 --remote the rest is compiled here"
            }
        };
        self.address.unusable(error_text(status), hint)
    }

    /// A call with its metadata and a time limit.
    pub(crate) fn request<T>(&self, message: T, purpose: &Purpose) -> tonic::Request<T> {
        let mut request = self.open_ended(message, purpose);
        request.set_timeout(CALL_LIMIT);
        request
    }

    /// The same for a call without a time limit.
    pub(crate) fn open_ended<T>(&self, message: T, purpose: &Purpose) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        let metadata = api::RequestMetadata {
            tool_details: Some(api::ToolDetails {
                tool_name: "gfxpack".to_owned(),
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            action_id: purpose.action.clone(),
            tool_invocation_id: self.invocation.clone(),
            action_mnemonic: "GpuKernel".to_owned(),
            target_id: purpose.name.clone(),
            configuration_id: purpose.target.clone(),
            ..Default::default()
        };
        let map = request.metadata_mut();
        let bytes = BinaryMetadataValue::from_bytes(&metadata.encode_to_vec());
        map.insert_bin(BinaryMetadataKey::from_static(METADATA), bytes);
        for (key, value) in &self.headers {
            map.insert(key.clone(), value.clone());
        }
        request
    }

    pub(crate) fn capabilities(&self) -> api::capabilities_client::CapabilitiesClient<Channel> {
        api::capabilities_client::CapabilitiesClient::new(self.channel.clone())
    }

    pub(crate) fn cas(
        &self,
    ) -> api::content_addressable_storage_client::ContentAddressableStorageClient<Channel> {
        api::content_addressable_storage_client::ContentAddressableStorageClient::new(
            self.channel.clone(),
        )
        .max_decoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn action_cache(&self) -> api::action_cache_client::ActionCacheClient<Channel> {
        api::action_cache_client::ActionCacheClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn execution(&self) -> api::execution_client::ExecutionClient<Channel> {
        api::execution_client::ExecutionClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn bytes(&self) -> ByteStreamClient<Channel> {
        ByteStreamClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn operations(&self) -> OperationsClient<Channel> {
        OperationsClient::new(self.channel.clone())
    }
}

fn tls(options: &RemoteOptions) -> Result<ClientTlsConfig, Error> {
    let read = |path: &Path| {
        let unreadable = |error| format!("`{}` can't be read: {error}", path.display());
        let unusable = |error| options.address.unusable(unreadable(error), "check the path");
        fs::read(path).map_err(unusable)
    };
    let mut config = ClientTlsConfig::new();
    config = match &options.ca {
        Some(ca) => config.ca_certificate(Certificate::from_pem(read(ca)?)),
        None => config.with_native_roots(),
    };
    if let Some((certificate, key)) = &options.identity {
        config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(config)
}

/// A failed call as text.
pub(crate) fn error_text(status: &tonic::Status) -> String {
    with_causes(format!("{:?}: {}", status.code(), status.message()), status)
}
