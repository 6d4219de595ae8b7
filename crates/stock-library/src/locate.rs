//! Finding a library: installed, unpacked, or fetched.

use std::path::Path;

use gfxpack_debian::{Archive, Lock};

use crate::debian;
use crate::error::LibraryError;
use crate::library::Library;
use crate::product::Product;
use crate::source::LibrarySource;
use crate::tree;

impl Library {
    /// Finds a library. `rocm` is the directory of an installed ROCm to search before the usual
    /// ones, as in ROCM_PATH; `archive` is used only if the source is one of Debian's.
    ///
    /// If a tree contains a dynamic loader, loader and libraries of that tree are used; otherwise
    /// those of the system, after the libraries of the tree.
    ///
    /// # Errors
    /// [`LibraryError`] if there is none, or if it is not for this machine.
    pub fn locate(
        product: &'static Product,
        source: &LibrarySource,
        rocm: Option<&Path>,
        archive: &Archive<'_>,
    ) -> Result<Self, LibraryError> {
        match source {
            LibrarySource::Installed => Self::installed(product, rocm),
            LibrarySource::Debian { suite, version } => {
                let lock = debian::choose(product, archive, suite, version.as_deref())?;
                Self::pinned(product, &lock, archive)
            }
            LibrarySource::Lock(path) => Self::pinned(product, &Lock::read(path)?, archive),
            LibrarySource::Path(path) => {
                let io = |source| LibraryError::Io { path: path.clone(), source };
                let path = std::path::absolute(path).map_err(io)?;
                let is_dir = path.metadata().map_err(io)?.is_dir();
                if !is_dir {
                    return Self::at(product, &path, None);
                }
                let file = tree::library(&path, product);
                let file = file
                    .ok_or_else(|| LibraryError::NotInDirectory { product, dir: path.clone() })?;
                Self::at(product, &file, Some(&path))
            }
        }
    }

    /// The installed library, as [`Self::locate`] finds it.
    ///
    /// # Errors
    /// As [`Self::locate`].
    pub fn installed(product: &'static Product, rocm: Option<&Path>) -> Result<Self, LibraryError> {
        let searched = tree::installed(rocm);
        let found = searched.iter().find_map(|dir| Some((tree::library(dir, product)?, dir)));
        let Some((file, dir)) = found else {
            return Err(LibraryError::NotInstalled { product, searched });
        };
        Self::at(product, &file, Some(dir))
    }

    /// The library in pinned packages. If the archive does not have one of them any more, the
    /// suite's newest packages are used, and `archive` reports a warning.
    ///
    /// # Errors
    /// [`LibraryError`], as [`Self::locate`].
    pub fn pinned(
        product: &'static Product,
        lock: &Lock,
        archive: &Archive<'_>,
    ) -> Result<Self, LibraryError> {
        debian::library(product, lock, archive)
    }

    /// The packages of Debian's archive for a library: its own, those of the same version that
    /// belong to it, and those of the libraries that it needs and that have no stand-in.
    ///
    /// # Errors
    /// [`LibraryError`], as [`Self::locate`].
    pub fn choose(
        product: &'static Product,
        archive: &Archive<'_>,
        suite: &str,
        version: Option<&str>,
    ) -> Result<Lock, LibraryError> {
        debian::choose(product, archive, suite, version)
    }
}
