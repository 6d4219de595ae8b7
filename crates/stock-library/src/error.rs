//! Errors of finding a library.

use std::io;
use std::path::PathBuf;

use gfxpack_debian::DebianError;

use crate::elf::ElfError;
use crate::product::Product;

/// Text that is no location of a library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read `{0}` as the place of a library")]
pub struct LibrarySourceError(pub(crate) String);

/// Why there is no library to ask.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// Neither `/opt/rocm` nor the system's directories contain one.
    #[error("found no installed {} in {}", .product.name, shown(.searched))]
    NotInstalled {
        /// The library.
        product: &'static Product,
        /// The searched directories.
        searched: Vec<PathBuf>,
    },
    /// The given directory contains none in the usual places.
    #[error("found no {} in `{dir}`", .product.name)]
    NotInDirectory {
        /// The library.
        product: &'static Product,
        /// The directory.
        dir: PathBuf,
    },
    /// The file or directory cannot be read.
    #[error("failed to read `{path}`")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is no shared library.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// The file is another shared library.
    #[error("`{path}` is no {}: it does not define `{}`", .product.name, .product.function)]
    OtherLibrary {
        /// The expected library.
        product: &'static Product,
        /// The file.
        path: PathBuf,
    },
    /// Debian's archive can't provide it.
    #[error(transparent)]
    Debian(#[from] DebianError),
    /// None of the packages that MIOpen's depends on contains a library that it needs.
    #[error("found `{soname}`, which `{file}` needs, in no package that `{package}` depends on")]
    NoDependency {
        /// The missing library.
        soname: String,
        /// The file that needs it.
        file: PathBuf,
        /// The package of that file.
        package: String,
    },
    /// The library is for another processor architecture.
    #[error("`{path}` is built for another processor than this machine's")]
    OtherMachine {
        /// The file.
        path: PathBuf,
    },
}

impl LibraryError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let text = match self {
            Self::NotInstalled { product, .. } => {
                let option = product.option;
                return format!(
                    "name one: {option} DIR takes that of a Python environment or an unpacked one, \
                     {option} debian:sid fetches Debian's"
                );
            }
            Self::NotInDirectory { product, .. } | Self::OtherLibrary { product, .. } => {
                return format!(
                    "give the {} itself, or the directory of a ROCm, as /opt/rocm",
                    product.file
                );
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check the permissions of the file and of the directories above it"
            }
            Self::Io { .. } => "check the path",
            Self::Elf(_) => "give a shared library, or the directory of a ROCm, as /opt/rocm",
            Self::Debian(_) => return String::new(),
            Self::NoDependency { .. } => {
                "unpack the library and what it needs into a directory, and name that directory"
            }
            Self::OtherMachine { .. } => "give one that is built for this machine's processor",
        };
        text.to_owned()
    }
}

fn shown(dirs: &[PathBuf]) -> String {
    let dirs: Vec<_> = dirs.iter().map(|dir| format!("`{}`", dir.display())).collect();
    dirs.join(", ")
}

impl From<LibraryError> for gfxpack_model::Error {
    fn from(error: LibraryError) -> Self {
        use gfxpack_model::ErrorKind::{Internal, Usage};
        let kind = match error {
            LibraryError::Debian(error) => return error.into(),
            LibraryError::NoDependency { .. } => Internal,
            _ => Usage,
        };
        let hint = error.hint();
        Self::new(kind, &error, hint).caused_by(error)
    }
}
