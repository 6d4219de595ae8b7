//! Runs one action: queries the cache, sends inputs, executes it, and fetches the outcome.

use std::sync::Mutex;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::google::longrunning::{CancelOperationRequest, Operation, operation};
use gfxpack_compile::{Action, ActionOutcome, RemoteError};
use prost::Message;
use tonic::{Code, Status, Streaming};

use super::Service;
use super::actions::{self, ActionRequest, ExecutionEnd};
use super::connection::{Connection, Purpose, error_text};
use super::retry::{is_absence, is_passing};
use super::tree::Tree;

/// How long the server has to accept a cancellation.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// The operation that executes an action, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Running {
    name: Mutex<String>,
}

impl Running {
    fn set(&self, name: &str) {
        name.clone_into(&mut self.name.lock().expect("no panic inside"));
    }

    fn name(&self) -> String {
        self.name.lock().expect("no panic inside").clone()
    }

    /// Asks the server to cancel the operation, if it supports this.
    pub(crate) async fn cancel(&self, connection: &Connection) {
        let name = self.name();
        if !name.is_empty() {
            let request = CancelOperationRequest { name };
            let request = connection.request(request, &Purpose::default());
            let mut client = connection.operations();
            tokio::time::timeout(CANCEL_LIMIT, client.cancel_operation(request)).await.ok();
        }
    }
}

/// Runs an action to its end.
///
/// A cached result that is a failure, or whose files are missing or damaged, is ignored: servers
/// cache failures too, which may have been the worker's.
pub(crate) async fn run(
    service: &Service,
    action: &Action,
    running: &Running,
) -> Result<ActionOutcome, RemoteError> {
    let tree = service.tree(action);
    let ask = ActionRequest::new(service, action, &tree);
    let mut skip_cache = false;
    match known(service, action, &ask).await {
        Ok(outcome) if outcome.exit_code == 0 => return Ok(outcome),
        Ok(outcome) => {
            tracing::debug!(action.name, outcome.exit_code, "a cached failure is tried again");
            skip_cache = true;
        }
        Err(status) if status.code() == Code::NotFound => {}
        Err(status) if status.code() == Code::DataLoss => {
            tracing::debug!(action.name, "{}; it is made again", error_text(&status));
            skip_cache = true;
        }
        Err(status) => return Err(RemoteError::Fatal(service.connection.failed(&status))),
    }
    if service.options.cache_only {
        return Err(RemoteError::NotCached);
    }
    let mut attempts = service.connection.retry.attempts();
    loop {
        let failed = match attempt(service, &ask, &tree, skip_cache, running).await {
            Ok(ExecutionEnd::TimedOut) => return Err(RemoteError::TimedOut),
            Ok(ExecutionEnd::Done(result, cached)) => {
                let outcome =
                    actions::outcome(service, action, *result, cached, &ask.purpose).await;
                match outcome {
                    // Some servers use the cache although they were asked not to.
                    Ok(outcome) if outcome.exit_code != 0 && cached && !skip_cache => {
                        skip_cache = true;
                        continue;
                    }
                    Ok(outcome) => return Ok(outcome),
                    Err(status) if is_absence(status.code()) => status,
                    Err(status) => {
                        skip_cache = true;
                        Status::data_loss(status.message())
                    }
                }
            }
            Ok(ExecutionEnd::Failed(status)) | Err(status) => status,
        };
        tracing::debug!(action.name, "an execution failed: {}", error_text(&failed));
        running.set("");
        let status = worth_another_try(service, &tree, failed)?;
        if let Err(status) = attempts.failed(status).await {
            // An absent server is an error of the service, any other one an error of this action.
            return Err(if attempts.is_absence(&status) {
                RemoteError::Fatal(service.connection.failed(&status))
            } else {
                RemoteError::Lost(error_text(&status))
            });
        }
    }
}

/// Returns the error if the execution should not be repeated.
fn worth_another_try(
    service: &Service,
    tree: &Tree,
    failed: Status,
) -> Result<Status, RemoteError> {
    match failed.code() {
        // Each of these codes may mean that inputs are missing; querying them again does no harm.
        Code::FailedPrecondition | Code::NotFound | Code::Internal => {
            service.blobs.forget(tree.blobs.iter());
            Ok(Status::internal(failed.message()))
        }
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented => {
            Err(RemoteError::Fatal(service.connection.failed(&failed)))
        }
        code if is_passing(code) => Ok(failed),
        _ => Err(RemoteError::Lost(error_text(&failed))),
    }
}

/// The cached result of an action; [`Code::NotFound`] if there is none.
async fn known(
    service: &Service,
    action: &Action,
    ask: &ActionRequest,
) -> Result<ActionOutcome, Status> {
    let connection = &service.connection;
    let request = api::GetActionResultRequest {
        instance_name: connection.address.instance.clone(),
        action_digest: Some(ask.action.api()),
        inline_stdout: true,
        inline_stderr: true,
        inline_output_files: vec![action.output.to_owned()],
        digest_function: api::digest_function::Value::Sha256 as i32,
    };
    let result = connection
        .retry
        .call(|| {
            let mut client = connection.action_cache();
            let request = connection.request(request.clone(), &ask.purpose);
            async move { client.get_action_result(request).await }
        })
        .await?
        .into_inner();
    let outcome = actions::outcome(service, action, result, true, &ask.purpose).await;
    outcome.map_err(|status| match status.code() {
        // A result without its files is another error than no result.
        Code::NotFound => Status::data_loss(status.message()),
        _ => status,
    })
}

/// Sends missing inputs, and executes the action.
async fn attempt(
    service: &Service,
    ask: &ActionRequest,
    tree: &Tree,
    skip_cache_lookup: bool,
    running: &Running,
) -> Result<ExecutionEnd, Status> {
    let Service { connection, blobs, .. } = service;
    blobs.send(connection, &tree.blobs, &ask.purpose).await?;
    blobs.send_batch(connection, &[&ask.command, &ask.action], &ask.purpose).await?;
    let request = api::ExecuteRequest {
        instance_name: connection.address.instance.clone(),
        skip_cache_lookup,
        action_digest: Some(ask.action.api()),
        digest_function: api::digest_function::Value::Sha256 as i32,
        inline_stdout: true,
        inline_stderr: true,
        ..Default::default()
    };
    let request = connection.open_ended(request, &ask.purpose);
    let stream = connection.execution().execute(request).await?.into_inner();
    connection.retry.note_answer();
    let mut attempts = connection.retry.attempts();
    let mut lost = match follow(connection, stream, running).await {
        Ok(end) => return Ok(end),
        Err(status) => status,
    };
    // If the connection breaks, the execution may still be running.
    loop {
        let name = running.name();
        if name.is_empty() || !is_absence(lost.code()) {
            return Err(lost);
        }
        attempts.failed(lost).await?;
        let request = api::WaitExecutionRequest { name };
        let request = connection.open_ended(request, &ask.purpose);
        let waited = match connection.execution().wait_execution(request).await {
            Ok(stream) => {
                connection.retry.note_answer();
                follow(connection, stream.into_inner(), running).await
            }
            Err(status) => Err(status),
        };
        lost = match waited {
            Ok(end) => return Ok(end),
            // A server that was restarted does not know the execution.
            Err(status) if !is_absence(status.code()) => {
                return Err(Status::aborted(format!(
                    "the execution was lost: {}",
                    error_text(&status)
                )));
            }
            Err(status) => status,
        };
    }
}

/// Follows an execution to its end.
async fn follow(
    connection: &Connection,
    mut stream: Streaming<Operation>,
    running: &Running,
) -> Result<ExecutionEnd, Status> {
    while let Some(operation) = stream.message().await? {
        connection.retry.note_answer();
        running.set(&operation.name);
        match operation.result {
            _ if !operation.done => {}
            Some(operation::Result::Response(any)) => {
                let response = api::ExecuteResponse::decode(&any.value[..]);
                let response = response.map_err(|error| {
                    Status::internal(format!("its answer can't be read: {error}"))
                })?;
                return Ok(ExecutionEnd::from_response(response));
            }
            Some(operation::Result::Error(status)) => {
                return Ok(ExecutionEnd::from_response(api::ExecuteResponse {
                    status: Some(status),
                    ..Default::default()
                }));
            }
            None => return Err(Status::internal("it was done without a result")),
        }
    }
    Err(Status::unavailable("its answer ended early"))
}
