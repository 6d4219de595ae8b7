//! A library on this machine, and everything needed to start it.

use std::path::{Path, PathBuf};

use gfxpack_debian::sha256;
use gfxpack_model::{Digest, InstallLayout};

use crate::elf::{self, ElfError, ElfFile};
use crate::error::LibraryError;
use crate::needs::{self, Needs};
use crate::product::Product;
use crate::tree;

/// A library and everything needed to start it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The shared object itself, links resolved.
    pub file: PathBuf,
    /// Its path where its package installs it: `/usr/lib/x86_64-linux-gnu/libMIOpen.so.1.0` for
    /// one that is unpacked elsewhere.
    pub installed: PathBuf,
    /// SHA-256 of that file.
    pub sha256: Digest,
    /// Its version, `3.4.0`, if it can be found.
    pub version: Option<String>,
    /// Its origin as text, with the package of its databases if there is one: `Debian sid,
    /// libmiopen1 6.4.3+dfsg-1`.
    pub origin: String,
    /// Directories of the libraries that it needs, in search order; empty if the system's
    /// directories are enough.
    pub search_path: Vec<PathBuf>,
    /// The dynamic loader to start it with, if that is not the system's.
    pub loader: Option<PathBuf>,
    /// The program that belongs to it, if it exists: MIOpenDriver.
    pub driver: Option<PathBuf>,
    /// Directories of the performance and find databases of its own packages.
    pub databases: Vec<PathBuf>,
}

impl Library {
    /// Where packages must install kernels for this library; `None` if its directory does not say
    /// where it looks.
    #[must_use]
    pub fn layout(&self) -> Option<InstallLayout> {
        InstallLayout::of_library(self.installed.to_str()?)
    }

    /// The library at `path`, in the tree below `root` if that is known.
    ///
    /// # Errors
    /// As [`Self::locate`].
    pub fn at(
        product: &'static Product,
        path: &Path,
        root: Option<&Path>,
    ) -> Result<Self, LibraryError> {
        let io = |source| LibraryError::Io { path: path.to_owned(), source };
        let file = path.canonicalize().map_err(io)?;
        let root = match root {
            Some(root) => root.canonicalize().map_err(io)?,
            None => tree::root(&file).to_owned(),
        };
        let mut dirs = Vec::new();
        if !tree::is_system(&root) {
            dirs.extend(file.parent().map(Path::to_owned));
            let others = tree::library_dirs(&root);
            // What `_rocm_sdk_libraries…` needs is in a package of its own.
            let core = tree::library_dirs(&root.with_file_name("_rocm_sdk_core"));
            let others = others.into_iter().chain(core);
            dirs.extend(others.filter(|dir| Some(dir.as_path()) != file.parent()));
        }
        describe(product, path, dirs, &[root], None)
    }

    /// The libraries and symbols that it needs, and those that are missing.
    ///
    /// # Errors
    /// [`ElfError`] for a library that can't be read.
    pub fn needs(&self) -> Result<Needs, ElfError> {
        Needs::of_file(&self.file, &self.search_path)
    }
}

/// Describes the library at `path`. `dirs` may contain libraries that it needs, `roots` files that
/// belong to it.
pub(crate) fn describe(
    product: &'static Product,
    path: &Path,
    dirs: Vec<PathBuf>,
    roots: &[PathBuf],
    origin: Option<String>,
) -> Result<Library, LibraryError> {
    let io = |source| LibraryError::Io { path: path.to_owned(), source };
    let file = path.canonicalize().map_err(io)?;
    let open = ElfFile::open(&file)?;
    let object = open.shared_object()?;
    if Some(object.machine) != elf::own_machine() {
        return Err(LibraryError::OtherMachine { path: path.to_owned() });
    }
    if !object.defined.contains(product.function) {
        return Err(LibraryError::OtherLibrary { product, path: path.to_owned() });
    }
    let version = (product.version)(&open.constants()?);
    let driver = product.driver.and_then(|name| tree::driver(roots, name));
    let driver_object = driver.as_ref().and_then(|driver| ElfFile::open(driver).ok());
    let driver_object = driver_object.and_then(|driver| driver.shared_object().ok());
    let objects: Vec<_> = std::iter::once(object).chain(driver_object).collect();
    Ok(Library {
        sha256: sha256(&file).map_err(io)?,
        version: version.or_else(|| (product.version_of_tree)(roots)),
        origin: origin.unwrap_or_else(|| file.display().to_string()),
        search_path: needs::search_path(&objects, &dirs),
        loader: tree::loader(&dirs),
        driver,
        databases: tree::databases(roots, product.databases),
        installed: tree::installed_path(&file, roots),
        file,
    })
}
