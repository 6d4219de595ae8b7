//! Errors of writing a kdb.

use std::io;
use std::path::PathBuf;

use gfxpack_model::{KernelKey, KeyError};

use crate::error_kind::KdbErrorKind;
use crate::schema::{MAX_KEY_BYTES, MAX_OBJECT_BYTES};

/// Why a kdb was not written. The destination is then unchanged.
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
        /// Beginning of the kernel's name.
        name: String,
        /// Bytes of name and arguments.
        size: usize,
    },
    /// The same key twice.
    #[error("failed to take kernel `{0}`: the key occurs twice")]
    Duplicate(Box<KernelKey>),
    /// A key that should come before its predecessor.
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
        /// The caller's error.
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
    /// The operating system reports an error.
    #[error("failed to {action} kdb `{path}`")]
    Io {
        /// What the program tried to do.
        action: &'static str,
        /// The destination.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A row that was just written can't be read back: the file is damaged in a
    /// way that writing did not detect.
    #[error("failed to find kernel `{key}` in kdb `{path}` after it was written")]
    ReadBack {
        /// The file.
        path: PathBuf,
        /// The key.
        key: Box<KernelKey>,
    },
    /// SQLite reports an error: most likely the disk is full.
    #[error("failed to write kdb `{path}`")]
    Sqlite {
        /// The destination.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl WriteError {
    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> KdbErrorKind {
        match self {
            Self::Io { source, .. } => KdbErrorKind::from_io(source),
            Self::Sqlite { source, .. } => KdbErrorKind::from_sqlite(source),
            Self::ReadBack { .. } => KdbErrorKind::Corrupt,
            Self::Key(_)
            | Self::KeyTooLong { .. }
            | Self::Duplicate(_)
            | Self::Order { .. }
            | Self::Object { .. }
            | Self::ObjectSize { .. } => KdbErrorKind::Input,
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

impl From<WriteError> for gfxpack_model::Error {
    fn from(error: WriteError) -> Self {
        let (kind, hint) = (gfxpack_model::ErrorKind::Internal, error.hint());
        Self::new(kind, &error, hint).caused_by(error)
    }
}
