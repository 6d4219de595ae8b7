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
    /// Finds a library. `rocm` is the directory of an installed ROCm that
    /// is looked into before the usual ones, as ROCM_PATH names it; `archive`
    /// is only asked where the source is one of Debian's.
    ///
    /// In a tree that brings its own dynamic loader, loader and libraries are
    /// that tree's; otherwise they are the system's, after those of the tree.
    ///
    /// # Errors
    /// [`LibraryError`], where there is none, or where it is none for this
    /// machine.
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

    /// The library that is installed, as [`Self::locate`] finds it.
    ///
    /// # Errors
    /// [`LibraryError`], as there.
    pub fn installed(product: &'static Product, rocm: Option<&Path>) -> Result<Self, LibraryError> {
        let searched = tree::installed(rocm);
        let found = searched.iter().find_map(|dir| Some((tree::library(dir, product)?, dir)));
        let Some((file, dir)) = found else {
            return Err(LibraryError::NotInstalled { product, searched });
        };
        Self::at(product, &file, Some(dir))
    }

    /// The library that pinned packages hold. Where the archive has gone on
    /// and does not have one of them any more, the suite's newest are taken,
    /// and `archive` is warned of it.
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

    /// The packages of Debian's archive that make a library: its own, with
    /// those of the same version that belong to it, and
    /// those of the libraries that it needs and that are not stood in for.
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
