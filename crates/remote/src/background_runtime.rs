//! The runtime of asynchronous code.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// Threads that transfer data; other waiting is done by the caller's threads.
const THREADS: usize = 2;

/// A runtime that has no end: it would wait for running calls, for whose answers nobody waits.
pub(crate) fn background_runtime(thread_name: &str) -> io::Result<&'static Runtime> {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(THREADS).thread_name(thread_name).enable_all().build()?;
    Ok(Box::leak(Box::new(runtime)))
}
