//! Where a repository is, and what it has for people who use it.

use std::path::Path;

use crate::url::encoded;

/// Where a repository keeps the public key.
pub const KEY_FILE: &str = "archive-key.asc";

/// Where a repository is used from.
#[derive(Debug, Clone)]
pub struct Address {
    /// `https://kernels.example.org/gfx`, or `file:/srv/kernels`; no slash at
    /// its end.
    url: String,
}

/// The files, by their names in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupFiles {
    /// For apt: `/etc/apt/sources.list.d`.
    pub sources: Option<String>,
    /// For dnf and zypper: `/etc/yum.repos.d`, `/etc/zypp/repos.d`.
    pub repo: Option<String>,
    /// The page for a browser.
    pub page: String,
}

impl Address {
    /// Somewhere: `https://kernels.example.org/gfx`.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned() }
    }

    /// On this machine. The directory is an absolute path.
    #[must_use]
    pub fn of_directory(dir: &Path) -> Self {
        Self { url: format!("file://{}", encoded(&dir.to_string_lossy())) }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}
