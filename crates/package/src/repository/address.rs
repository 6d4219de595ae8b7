//! The address of a repository, and its files for users.

use std::path::Path;

use crate::url::encoded;

/// The file with the public key.
pub const KEY_FILE: &str = "archive-key.asc";

/// The address under which a repository is used.
#[derive(Debug, Clone)]
pub struct Address {
    /// `https://kernels.example.org/gfx`, or `file:/srv/kernels`; without a slash
    /// at the end.
    url: String,
}

/// The files for users, by their names in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupFiles {
    /// For apt: `/etc/apt/sources.list.d`.
    pub sources: Option<String>,
    /// For dnf and zypper: `/etc/yum.repos.d`, `/etc/zypp/repos.d`.
    pub repo: Option<String>,
}

impl Address {
    /// An address on the network: `https://kernels.example.org/gfx`.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned() }
    }

    /// An address on this machine. The directory is an absolute path.
    #[must_use]
    pub fn of_directory(dir: &Path) -> Self {
        Self { url: format!("file://{}", encoded(&dir.to_string_lossy())) }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}
