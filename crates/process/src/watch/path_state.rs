//! The result of an access to one path.

use std::path::PathBuf;

use gfxpack_model::Digest;
use serde::{Deserialize, Serialize};

use super::path_text;

/// What exists at a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathState {
    /// Nothing exists.
    Absent,
    /// A directory, whatever it contains.
    Directory,
    /// A directory, by a path with links or `..`; with its path without these.
    LinkedDirectory(#[serde(with = "path_text")] PathBuf),
    /// A directory that contains these names.
    Listing(Digest),
    /// A symbolic link with this target, whether or not that exists.
    Link(#[serde(with = "path_text")] PathBuf),
    /// Not a symbolic link.
    NoLink,
    /// A regular file.
    File {
        /// SHA-256 of its content.
        digest: Digest,
        /// Its path without links, if that is different.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "path_text::option")]
        real: Option<PathBuf>,
    },
    /// A regular file, and whether any user may execute it.
    Executable(bool),
    /// Another kind of file, or one that can't be accessed.
    Other,
}

/// A question about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PathQuery {
    /// What exists there, links followed.
    Content,
    /// The same, with the names in it if it is a directory.
    Listing,
    /// The target of the link, if it is one.
    Link,
    /// Whether any user may execute it, if it is a file.
    Executable,
}

impl PathState {
    /// The question that has this answer.
    pub(super) fn query(&self) -> PathQuery {
        match self {
            Self::Listing(_) => PathQuery::Listing,
            Self::Link(_) | Self::NoLink => PathQuery::Link,
            Self::Executable(_) => PathQuery::Executable,
            _ => PathQuery::Content,
        }
    }

    /// The digest of a file's content.
    pub(super) fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } => Some(*digest),
            _ => None,
        }
    }
}
