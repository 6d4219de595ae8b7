//! Converts actions to messages, and results to outcomes.

use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::google::protobuf;
use gfxpack_compile::{Action, ActionOutcome};
use tonic::{Code, Status};

use super::Service;
use super::blobs::{fetch, is_whole};
use super::connection::Purpose;
use super::tree::{Blob, Tree};

/// An action with its digests.
pub(crate) struct ActionRequest {
    pub(crate) command: Blob,
    pub(crate) action: Blob,
    pub(crate) purpose: Purpose,
}

impl ActionRequest {
    pub(crate) fn new(service: &Service, action: &Action, tree: &Tree) -> Self {
        let platform = (!service.options.platform.is_empty()).then(|| {
            let mut properties: Vec<_> = service.options.platform.clone();
            // The protocol requires sorting by name, then by value.
            properties.sort();
            let properties = properties.into_iter();
            let properties =
                properties.map(|(name, value)| api::platform::Property { name, value });
            api::Platform { properties: properties.collect() }
        });
        #[expect(deprecated, reason = "servers of version 2.1 read it here, later ones below")]
        let command = Blob::from_message(&api::Command {
            arguments: action.arguments.clone(),
            output_paths: vec![action.output.to_owned()],
            working_directory: action.directory.to_owned(),
            platform: platform.clone(),
            ..Default::default()
        });
        let timeout = protobuf::Duration {
            seconds: i64::try_from(action.time_limit.as_secs()).unwrap_or(i64::MAX),
            nanos: action.time_limit.subsec_nanos() as i32,
        };
        let message = Blob::from_message(&api::Action {
            command_digest: Some(command.api()),
            input_root_digest: Some(tree.root.clone()),
            timeout: Some(timeout),
            platform,
            ..Default::default()
        });
        let purpose = Purpose {
            action: message.digest.to_string(),
            name: action.name.clone(),
            target: action.target.clone(),
        };
        Self { command, action: message, purpose }
    }
}

/// The outcome for a result, with its object. [`Code::NotFound`] if the service no longer has it,
/// [`Code::DataLoss`] if it is damaged.
pub(crate) async fn outcome(
    service: &Service,
    action: &Action,
    result: api::ActionResult,
    cached: bool,
    purpose: &Purpose,
) -> Result<ActionOutcome, Status> {
    let metadata = result.execution_metadata.unwrap_or_default();
    let duration =
        match (metadata.execution_start_timestamp, metadata.execution_completed_timestamp) {
            (Some(start), Some(end)) => between(&start, &end),
            _ => None,
        };
    let file = result.output_files.into_iter().find(|file| file.path == action.output);
    let output = match file {
        None => None,
        Some(file) => {
            let digest = file.digest.unwrap_or_default();
            if is_whole(&digest, &file.contents) {
                Some(file.contents)
            } else {
                Some(fetch(&service.connection, &digest, purpose).await?)
            }
        }
    };
    let diagnostics = [result.stderr_raw, result.stdout_raw].concat();
    Ok(ActionOutcome {
        exit_code: result.exit_code,
        diagnostics: String::from_utf8_lossy(&diagnostics).into_owned(),
        output,
        worker: metadata.worker,
        cached,
        duration,
    })
}

/// How an execution ended.
pub(crate) enum ExecutionEnd {
    Done(Box<api::ActionResult>, bool),
    TimedOut,
    Failed(Status),
}

impl ExecutionEnd {
    pub(crate) fn from_response(response: api::ExecuteResponse) -> Self {
        let status = response.status.unwrap_or_default();
        match (Code::from(status.code), response.result) {
            (Code::Ok, Some(result)) => Self::Done(Box::new(result), response.cached_result),
            (Code::Ok, None) => Self::Failed(Status::internal("it answered without a result")),
            (Code::DeadlineExceeded, _) => Self::TimedOut,
            (code, _) => Self::Failed(Status::new(code, status.message)),
        }
    }
}

fn between(start: &protobuf::Timestamp, end: &protobuf::Timestamp) -> Option<Duration> {
    let nanos = |time: &protobuf::Timestamp| {
        i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
    };
    u64::try_from(nanos(end) - nanos(start)).ok().map(Duration::from_nanos)
}
