//! A libMIOpen on this machine: installed, unpacked, or fetched.

use std::path::PathBuf;

use gfxpack_plan::Digest;

/// A libMIOpen and what it takes to start it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The shared object itself, links resolved.
    pub file: PathBuf,
    /// SHA-256 of that file.
    pub sha256: Digest,
    /// MIOpen's own version, `3.4.0`, where it can be told.
    pub version: Option<String>,
    /// Where it comes from, for people: `Debian sid, libmiopen1 6.4.3+dfsg-1`.
    pub origin: String,
    /// Directories of the libraries that it needs, in the order of search;
    /// empty where the system's own places do.
    pub search_path: Vec<PathBuf>,
    /// The dynamic loader to start it with, where this is not the system's.
    pub loader: Option<PathBuf>,
    /// MIOpenDriver of the same version, where it is there.
    pub driver: Option<PathBuf>,
    /// Directories of the performance and find databases of its own packages.
    pub databases: Vec<PathBuf>,
}
