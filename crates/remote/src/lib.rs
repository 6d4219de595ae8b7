//! Remote services: servers that run compile jobs (the Remote Execution API), and stores that share
//! objects.
//!
//! All asynchronous code of gfxpack is here, behind blocking functions.
//!
//! ```
//! let address: gfxpack_remote::Address = "grpc://127.0.0.1:8980".parse()?;
//! assert_eq!(address.to_string(), "grpc://127.0.0.1:8980");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(feature = "cache", feature = "execution"))]
mod background_runtime;
#[cfg(feature = "cache")]
mod cache;
#[cfg(feature = "execution")]
mod execution;

#[cfg(feature = "cache")]
pub use cache::RemoteCache;
#[cfg(feature = "execution")]
pub use execution::{Address, RemoteExecution, RemoteOptions};
