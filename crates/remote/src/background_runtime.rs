//! The runtime of asynchronous code.

use std::io;
use std::ops::Deref;

use tokio::runtime::{Builder, Runtime};

/// Threads that transfer data; other waiting is done by the caller's threads.
const THREADS: usize = 2;

/// A runtime whose end does not wait for running calls: nobody waits for their answers.
pub(crate) struct BackgroundRuntime(Option<Runtime>);

impl BackgroundRuntime {
    pub(crate) fn new(thread_name: &str) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(THREADS).thread_name(thread_name).enable_all().build()?;
        Ok(Self(Some(runtime)))
    }
}

impl Deref for BackgroundRuntime {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("there until this is dropped")
    }
}

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
