//! What it takes to trust a server, and to be trusted.

use std::path::PathBuf;

/// What it takes to trust the server, and to be trusted by it.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Certificates, in PEM, of those who vouch for the server, in place of
    /// the system's.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}
