//! What lies beyond this machine: servers that run compile jobs (the Remote
//! Execution API), and stores that share objects.
//!
//! All asynchronous code of gfxpack is here, behind functions that block.

#[cfg(feature = "cache")]
mod cache;
#[cfg(feature = "execution")]
mod execution;

#[cfg(feature = "cache")]
pub use cache::{CacheUrlError, RemoteCache};
#[cfg(feature = "execution")]
pub use execution::{Address, RemoteExecution, RemoteOptions, Tls};
