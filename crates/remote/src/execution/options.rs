//! Options of a service.

use std::path::PathBuf;
use std::time::Duration;

use super::address::Address;

/// Options of a service.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The address.
    pub address: Address,
    /// The number of parallel actions, at least 1.
    pub jobs: usize,
    /// Headers of every call: authorization and the like.
    pub headers: Vec<(String, String)>,
    /// Certificates and keys.
    pub tls: Tls,
    /// Properties that workers must have.
    pub platform: Vec<(String, String)>,
    /// Whether to take only results of the action cache, and run nothing.
    pub cache_only: bool,
    /// How long to wait for a server that does not answer.
    pub wait_limit: Duration,
}

/// Certificates and keys of both sides.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Certificate authorities for the server, in PEM, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The client's certificate and its key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}
