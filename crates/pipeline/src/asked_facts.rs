//! What libMIOpen was asked, as manifests and packages say it.

use gfxpack_model::{Digest, KernelKey};
use serde::{Deserialize, Serialize};

use crate::text::joined;

/// What was asked, as manifests and packages say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedFacts {
    /// MIOpen's version; empty where the library does not tell it.
    pub version: String,
    /// Where the library comes from.
    pub origin: String,
    /// SHA-256 of the library.
    pub sha256: Digest,
    /// Whose kernels were asked for: `search,hit,immediate`.
    pub uses: String,
    /// Databases that it was asked with, beside asking without any.
    pub databases: Vec<FileFact>,
    /// Lists of problems.
    pub problems: Vec<ProblemsFact>,
    /// Keys that were asked for and whose source is not here, or left out by
    /// `--dfsg` or for its licence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_source: Vec<KernelKey>,
}

/// A file, by what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFact {
    /// The file's name.
    pub file: String,
    /// SHA-256 of its content.
    pub sha256: Digest,
}

/// A list of problems.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemsFact {
    /// The file's name.
    pub file: String,
    /// Problems in it.
    pub problems: usize,
    /// SHA-256 of their canonical lines, sorted.
    pub sha256: Digest,
}

impl ProblemsFact {
    /// The list's name, for people.
    pub fn name(&self) -> &str {
        self.file.trim_end_matches(".txt")
    }
}

impl AskedFacts {
    /// The names of the databases.
    pub fn databases_in_words(&self) -> String {
        joined(self.databases.iter().map(|one| &one.file))
    }

    /// The part that concerns one processor's kernels.
    pub fn of_processor(&self, processor: &str) -> Self {
        let is_its =
            |key: &&KernelKey| key.split_device().is_none_or(|(_, device)| device == processor);
        let without_source = self.without_source.iter().filter(is_its).cloned().collect();
        Self { without_source, ..self.clone() }
    }
}

/// `MIOpen 3.4.0 (Debian sid, libmiopen1 6.4.3+dfsg-1; sha256 0123456789ab)`.
pub fn library_in_words(facts: &AskedFacts) -> String {
    let sha256 = facts.sha256.to_string();
    let version = if facts.version.is_empty() { "of unknown version" } else { &facts.version };
    format!("MIOpen {version} ({}; sha256 {})", facts.origin, &sha256[..12])
}
