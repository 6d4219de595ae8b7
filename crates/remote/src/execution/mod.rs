//! A client of the Remote Execution API, version 2: it queries the action cache, sends inputs,
//! executes the action, and checks every byte that it receives.
//!
//! Source: bazelbuild/remote-apis,
//! build/bazel/remote/execution/v2/remote_execution.proto.

mod actions;
mod address;
mod blobs;
mod connection;
mod retry;
mod run;
mod tree;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gfxpack_compile::{Action, ActionOutcome, Cancel, RemoteError, RemoteWorkers, interrupted};
use gfxpack_model::{Digest, Error};
use tokio::runtime::Runtime;

use self::blobs::Blobs;
use self::connection::Connection;
use self::run::Running;
use self::tree::Tree;
use crate::background_runtime::background_runtime;

pub use self::address::Address;

/// How often a waiting job checks whether the build was cancelled.
const TICK: Duration = Duration::from_millis(50);

/// Options of a service.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The address.
    pub address: Address,
    /// The number of parallel actions, at least 1.
    pub jobs: usize,
    /// Headers of every call: authorization and the like.
    pub headers: Vec<(String, String)>,
    /// Certificate authorities for the server, in PEM, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The client's certificate and its key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Properties that workers must have.
    pub platform: Vec<(String, String)>,
    /// Whether to take only results of the action cache, and run nothing.
    pub cache_only: bool,
    /// How long to wait for a server that does not answer.
    pub wait_limit: Duration,
}

/// A service that runs actions. The first action connects to it.
pub struct RemoteExecution {
    runtime: &'static Runtime,
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
    /// If headers or certificates are invalid.
    pub fn new(options: RemoteOptions) -> Result<Self, Error> {
        let runtime = background_runtime("remote").map_err(|error| {
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
                    Err(RemoteError::Fatal(interrupted()))
                }
            }
        })
    }
}

/// The state that all actions share.
pub(crate) struct Service {
    options: RemoteOptions,
    connection: Connection,
    blobs: Blobs,
    trees: Mutex<HashMap<Digest, Arc<Tree>>>,
}

impl Service {
    async fn run(&self, action: &Action, running: &Running) -> Result<ActionOutcome, RemoteError> {
        let Self { connection, options, blobs, .. } = self;
        let learn = || connection.learn(options.cache_only);
        blobs.limit.get_or_try_init(learn).await.map_err(RemoteError::Fatal)?;
        run::run(self, action, running).await
    }

    /// The tree of an input root, built once.
    fn tree(&self, action: &Action) -> Arc<Tree> {
        let mut trees = self.trees.lock().expect("no panic inside");
        let tree = trees.entry(action.root.digest);
        Arc::clone(tree.or_insert_with(|| Arc::new(Tree::from_root(&action.root))))
    }
}

/// Ends when the build is cancelled.
async fn cancelled(cancel: &Cancel) {
    while !cancel.is_cancelled() {
        tokio::time::sleep(TICK).await;
    }
}
