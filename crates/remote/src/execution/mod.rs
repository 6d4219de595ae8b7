//! A client of the Remote Execution API, version 2: it queries the action cache, sends inputs,
//! executes the action, and checks every byte that it receives.
//!
//! Source: bazelbuild/remote-apis,
//! build/bazel/remote/execution/v2/remote_execution.proto.

mod actions;
mod address;
mod blobs;
mod connection;
mod limits;
mod options;
mod retry;
mod run;
mod service;
mod tree;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gfxpack_compile::{Action, ActionOutcome, Cancel, RemoteError, RemoteWorkers};

use self::blobs::Blobs;
use self::connection::Connection;
use self::run::Running;
use self::service::Service;
use crate::background_runtime::BackgroundRuntime;

pub use self::address::Address;
pub use self::options::{RemoteOptions, Tls};

/// How often a waiting job checks whether the build was cancelled.
const TICK: Duration = Duration::from_millis(50);

/// A service that runs actions. The first action connects to it.
pub struct RemoteExecution {
    runtime: BackgroundRuntime,
    service: Arc<Service>,
}

impl fmt::Debug for RemoteExecution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, .. } = self;
        // Headers are left out, since they contain credentials.
        f.debug_struct("RemoteExecution").field("address", &service.options.address).finish()
    }
}

impl RemoteExecution {
    /// A client that is not connected yet.
    ///
    /// # Errors
    /// [`RemoteError::Service`] if headers or certificates are invalid.
    pub fn new(options: RemoteOptions) -> Result<Self, RemoteError> {
        let runtime = BackgroundRuntime::new("remote").map_err(|error| {
            options.address.unusable(error, "check that memory and threads are left")
        })?;
        let connection = {
            let _inside = runtime.enter();
            Connection::new(&options)?
        };
        let service =
            Service { connection, options, blobs: Blobs::default(), trees: Mutex::default() };
        Ok(Self { runtime, service: Arc::new(service) })
    }
}

impl RemoteWorkers for RemoteExecution {
    fn count(&self) -> usize {
        self.service.options.jobs
    }

    fn run(&self, action: &Action, cancel: &Cancel) -> Result<ActionOutcome, RemoteError> {
        self.runtime.block_on(async {
            let running = Running::default();
            tokio::select! {
                outcome = self.service.run(action, &running) => outcome,
                () = cancelled(cancel) => {
                    running.cancel(&self.service.connection).await;
                    Err(RemoteError::Interrupted)
                }
            }
        })
    }
}

impl Service {
    async fn run(&self, action: &Action, running: &Running) -> Result<ActionOutcome, RemoteError> {
        let Self { connection, options, blobs, .. } = self;
        blobs.limit.get_or_try_init(|| connection.learn(options.cache_only)).await?;
        run::run(self, action, running).await
    }
}

/// Ends when the build is cancelled.
async fn cancelled(cancel: &Cancel) {
    while !cancel.is_cancelled() {
        tokio::time::sleep(TICK).await;
    }
}
