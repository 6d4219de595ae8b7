//! What writing a kdb can fail with.

use std::io;
use std::path::PathBuf;

use gfxpack_model::{KernelKey, KeyError};

use crate::fault::Fault;
use crate::schema::{MAX_KEY_BYTES, MAX_OBJECT_BYTES};

/// Why a kdb was not written. The destination is then as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A key that MIOpen could never find.
    #[error("failed to take a kernel into the kdb")]
    Key(#[from] KeyError),
    /// A key beyond [`MAX_KEY_BYTES`].
    #[error(
        "failed to take kernel `{name}`: its key has {size} bytes, the limit is {MAX_KEY_BYTES}"
    )]
    KeyTooLong {
        /// The kernel name's beginning.
        name: String,
        /// Bytes of name and arguments.
        size: usize,
    },
    /// The same key twice.
    #[error("failed to take kernel `{0}`: the key occurs twice")]
    Duplicate(Box<KernelKey>),
    /// A key before its predecessor.
    #[error("failed to take kernel `{key}`: it must stand before `{previous}`")]
    Order {
        /// The key.
        key: Box<KernelKey>,
        /// The one before it.
        previous: Box<KernelKey>,
    },
    /// The caller could not deliver a code object.
    #[error("failed to read the code object of kernel `{key}`")]
    Object {
        /// The key.
        key: Box<KernelKey>,
        /// What the caller said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A code object of no bytes, or beyond [`MAX_OBJECT_BYTES`].
    #[error(
        "failed to take kernel `{key}`: its code object has {size} bytes, not 1 to {MAX_OBJECT_BYTES}"
    )]
    ObjectSize {
        /// The key.
        key: Box<KernelKey>,
        /// Bytes of the code object.
        size: u64,
    },
    /// The file system refuses.
    #[error("failed to {action} kdb `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The destination.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// The file does not give back what was just written: it is damaged in a
    /// way that writing did not meet.
    #[error("failed to find kernel `{key}` in kdb `{path}` after it was written")]
    ReadBack {
        /// The file.
        path: PathBuf,
        /// The key.
        key: Box<KernelKey>,
    },
    /// SQLite refuses: most likely the disk is full.
    #[error("failed to write kdb `{path}`")]
    Sqlite {
        /// The destination.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

impl WriteError {
    /// The kind of error.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Io { source, .. } => Fault::from_io(source),
            Self::Sqlite { source, .. } => Fault::from_sqlite(source),
            Self::ReadBack { .. } => Fault::Corrupt,
            Self::Key(_)
            | Self::KeyTooLong { .. }
            | Self::Duplicate(_)
            | Self::Order { .. }
            | Self::Object { .. }
            | Self::ObjectSize { .. } => Fault::Input,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Key(error) => error.hint(),
            Self::KeyTooLong { .. } => "check the kernel's arguments: no solver writes that many",
            Self::Duplicate(_) => "name every kernel once, with the same arguments byte for byte",
            Self::Order { .. } => "sort the keys by name and then by arguments, bytewise",
            Self::Object { .. } | Self::ObjectSize { .. } => {
                "build the kernel again; what the cache holds of it may be damaged"
            }
            Self::ReadBack { .. } => "remove the file: it is damaged",
            Self::Io { .. } | Self::Sqlite { .. } => {
                "check that the directory exists, may be written, and has room for the file"
            }
        }
    }
}
