//! How a service is used.

use std::path::PathBuf;
use std::time::Duration;

use gfxpack_compile::ToolchainSource;

use super::address::Address;

/// How a service is used.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Where it is.
    pub address: Address,
    /// How many actions are asked for at once, at least 1.
    pub jobs: usize,
    /// Sent with every call: authorization and the like.
    pub headers: Vec<(String, String)>,
    /// What it takes to trust the server, and to be trusted.
    pub tls: Tls,
    /// What workers must have.
    pub platform: Vec<(String, String)>,
    /// Where the compiler comes from.
    pub toolchain: ToolchainSource,
    /// Whether only what the action cache has is taken, and nothing run.
    pub cache_only: bool,
    /// How long a server that does not answer is waited for.
    pub wait_limit: Duration,
}

/// What it takes to trust the server, and to be trusted by it.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Certificates, in PEM, of those who vouch for the server, in place of
    /// the system's.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}
