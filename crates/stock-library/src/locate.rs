//! Finding a library: installed, unpacked, or fetched.

use std::path::Path;

use gfxpack_debian::{Archive, Lock};

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
                let lock = Self::choose(product, archive, suite, version.as_deref())?;
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
                let (file, root) = tree::library_at(product, &path)
                    .ok_or_else(|| LibraryError::NotInDirectory { product, dir: path.clone() })?;
                Self::at(product, &file, Some(&root))
            }
        }
    }

    /// The installed library, as [`Self::locate`] finds it.
    ///
    /// # Errors
    /// As [`Self::locate`].
    pub fn installed(product: &'static Product, rocm: Option<&Path>) -> Result<Self, LibraryError> {
        let Some((file, dir)) = tree::installed_file(product, rocm) else {
            return Err(LibraryError::NotInstalled { product, searched: tree::installed(rocm) });
        };
        Self::at(product, &file, Some(&dir))
    }
}
