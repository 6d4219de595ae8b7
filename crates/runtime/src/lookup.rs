//! The result of a lookup: the kernel and the layer that it comes from, or the
//! reasons for misses.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use crate::miss::{Miss, MissReason};
use crate::user::UserError;

/// A source of kernels other than the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Layer {
    /// This process's memory.
    Memory,
    /// An installed kdb.
    System,
    /// The user's kdb.
    User,
}

impl Layer {
    /// The layer in machine-readable output: `system`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::System => "system",
            Self::User => "user",
        }
    }
}

/// The bytes that a device loads. Cloning shares them.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeObject(Arc<Vec<u8>>);

impl From<Vec<u8>> for CodeObject {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

impl Deref for CodeObject {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for CodeObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodeObject({} bytes)", self.len())
    }
}

/// The result of a lookup.
#[derive(Debug)]
#[non_exhaustive]
pub struct Lookup {
    /// The kernel, if a layer has it.
    pub found: Option<Hit>,
    /// The files that were searched before and did not have it, in order.
    pub misses: Vec<Miss>,
}

/// A kernel, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// The layer.
    pub layer: Layer,
    /// The file; `None` for memory.
    pub file: Option<PathBuf>,
    /// The code object for the device. Its gfx target and its MD5 are checked.
    pub code_object: CodeObject,
}

/// A kernel, found or compiled.
#[derive(Debug)]
#[non_exhaustive]
pub struct Kernel {
    /// The code object for the device.
    pub code_object: CodeObject,
    /// Where it came from.
    pub origin: Origin,
    /// Why a compiled kernel was not saved; `None` if it was saved, or if there
    /// was nothing to save. Unless it was refused, it is then kept in memory.
    pub not_stored: Option<NotStored>,
    /// Files that were searched without success before `origin`, in order.
    pub misses: Vec<Miss>,
}

/// Where a kernel came from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// This process's memory.
    Memory,
    /// An installed kdb.
    System(PathBuf),
    /// The user's kdb.
    User(PathBuf),
    /// The caller's compiler, in this call.
    Compiled,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("from memory"),
            Self::System(file) => write!(f, "from the installed kdb {}", file.display()),
            Self::User(file) => write!(f, "from the user's kdb {}", file.display()),
            Self::Compiled => f.write_str("compiled"),
        }
    }
}

/// Why a compiled kernel is not in the user's kdb.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotStored {
    /// There is no user cache, by configuration or since no directory is
    /// usable.
    #[error("failed to save the kernel: {0}")]
    NoUserCache(String),
    /// The cache would not return the compiled bytes: they are not for this
    /// device.
    #[error("failed to save the kernel: the compiled bytes are no code for this device")]
    Refused(#[source] MissReason),
    /// The code object is larger than the limit of the whole cache.
    #[error("failed to save the kernel: its {size} bytes are more than the cache's {limit}")]
    TooLarge {
        /// Bytes of the code object.
        size: u64,
        /// The limit in force.
        limit: u64,
    },
    /// The user's kdb could not be written: a full disk, no permission.
    #[error("failed to save the kernel")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl NotStored {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoUserCache(_) => "set MIOPEN_CUSTOM_CACHE_DIR to a directory of your own",
            Self::Refused(_) => "check the gfx target in the compiler's command line",
            Self::TooLarge { .. } => "raise the cache's size limit",
            Self::Failed(error) => match error.downcast_ref::<UserError>() {
                Some(error) => error.hint(),
                None => "check that the disk has room and the directory is yours",
            },
        }
    }
}
