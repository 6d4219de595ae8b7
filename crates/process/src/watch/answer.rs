//! The result of a compiler's access to one path.

use std::path::PathBuf;

use gfxpack_model::Digest;
use serde::{Deserialize, Serialize};

use super::path_text;

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Nothing is there.
    Absent,
    /// A directory, whatever is in it.
    Directory,
    /// The same by a path with links in it or `..`, and its path without.
    LinkedDirectory(#[serde(with = "path_text")] PathBuf),
    /// A directory with these names in it.
    Listing(Digest),
    /// A symbolic link that holds this, wherever it leads.
    Link(#[serde(with = "path_text")] PathBuf),
    /// Something that is no symbolic link.
    NoLink,
    /// A regular file.
    File {
        /// SHA-256 of its content.
        digest: Digest,
        /// Its path without links, where that is another one.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "path_text::option")]
        real: Option<PathBuf>,
    },
    /// A regular file, and whether anybody may execute it.
    Executable(bool),
    /// Something else, or something that can't be looked at.
    Other,
}

/// What is asked of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Query {
    /// What is there, links followed.
    What,
    /// Likewise, and what is in it if it is a directory.
    Names,
    /// What a link holds, if it is one.
    Link,
    /// Whether it may be executed, if it is a file.
    Executable,
}

impl Answer {
    /// What is asked to have this answer.
    #[must_use]
    pub fn query(&self) -> Query {
        match self {
            Self::Listing(_) => Query::Names,
            Self::Link(_) | Self::NoLink => Query::Link,
            Self::Executable(_) => Query::Executable,
            _ => Query::What,
        }
    }

    /// A file's content.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } => Some(*digest),
            _ => None,
        }
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory | Self::LinkedDirectory(_))
    }
}
