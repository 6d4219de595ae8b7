//! A library on this machine, and everything needed to start it.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_debian::{Archive, Lock, sha256};
use gfxpack_model::{Digest, Error, InstallLayout, Result};

use crate::elf::{self, ElfFile};
use crate::needs::{self, Needs};
use crate::product::Product;
use crate::source::LibrarySource;
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
    /// Finds a library. `rocm` is the directory of an installed ROCm to search before the usual
    /// ones, as in ROCM_PATH; `archive` is used only if the source is one of Debian's.
    ///
    /// If a tree contains a dynamic loader, loader and libraries of that tree are used; otherwise
    /// those of the system, after the libraries of the tree.
    pub fn locate(
        product: &'static Product,
        source: &LibrarySource,
        rocm: Option<&Path>,
        archive: &Archive<'_>,
    ) -> Result<Self> {
        match source {
            LibrarySource::Installed => Self::installed(product, rocm),
            LibrarySource::Debian { suite, version } => {
                let lock = Self::choose(product, archive, suite, version.as_deref())?;
                Self::pinned(product, &lock, archive)
            }
            LibrarySource::Lock(path) => Self::pinned(product, &Lock::read(path)?, archive),
            LibrarySource::Path(given) => {
                let path = std::path::absolute(given).map_err(io_error(given))?;
                if !path.metadata().map_err(io_error(given))?.is_dir() {
                    return Self::at(product, &path, None);
                }
                let found = tree::library_at(product, &path);
                let (file, root) = found.ok_or_else(|| product.is_not_in(&path))?;
                Self::at(product, &file, Some(&root))
            }
        }
    }

    /// The installed library, as [`Self::locate`] finds it.
    pub fn installed(product: &'static Product, rocm: Option<&Path>) -> Result<Self> {
        if let Some((file, dir)) = tree::installed_file(product, rocm) {
            return Self::at(product, &file, Some(&dir));
        }
        let searched = tree::installed(rocm);
        let searched: Vec<_> = searched.iter().map(|dir| format!("`{}`", dir.display())).collect();
        let option = product.option;
        Err(Error::usage(
            format!("found no installed {} in {}", product.name, searched.join(", ")),
            format!(
                "name one: {option} DIR takes that of a Python environment or an unpacked one, \
                 {option} debian:sid fetches Debian's"
            ),
        ))
    }

    /// Where packages must install kernels for this library; `None` if its directory does not say
    /// where it looks.
    pub fn layout(&self) -> Option<InstallLayout> {
        InstallLayout::of_library(self.installed.to_str()?)
    }

    /// The library at `path`, in the tree below `root` if that is known.
    pub fn at(product: &'static Product, path: &Path, root: Option<&Path>) -> Result<Self> {
        let file = path.canonicalize().map_err(io_error(path))?;
        let root = match root {
            Some(root) => root.canonicalize().map_err(io_error(path))?,
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
    pub fn needs(&self) -> Result<Needs> {
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
) -> Result<Library> {
    let file = path.canonicalize().map_err(io_error(path))?;
    let open = ElfFile::open(&file).map_err(unreadable)?;
    let object = open.shared_object().map_err(unreadable)?;
    let shown = path.display();
    if Some(object.machine) != elf::own_machine() {
        return Err(Error::usage(
            format!("`{shown}` is built for another processor than this machine's"),
            "give one that is built for this machine's processor",
        ));
    }
    if !object.defined.contains(product.function) {
        let Product { name, function, .. } = product;
        return Err(
            product.is_not(format!("`{shown}` is no {name}: it does not define `{function}`"))
        );
    }
    let version = (product.version)(&open.constants().map_err(unreadable)?);
    let driver = product.driver.and_then(|name| tree::driver(roots, name));
    let driver_object = driver.as_ref().and_then(|driver| ElfFile::open(driver).ok());
    let driver_object = driver_object.and_then(|driver| driver.shared_object().ok());
    let objects: Vec<_> = std::iter::once(object).chain(driver_object).collect();
    Ok(Library {
        sha256: sha256(&file).map_err(io_error(path))?,
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

/// The error for a file or directory that can't be read.
fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| {
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => {
                "check the permissions of the file and of the directories above it"
            }
            _ => "check the path",
        };
        Error::usage(format!("failed to read `{}`", path.display()), hint).caused_by(source)
    }
}

/// The error for a file that is no shared library.
pub(crate) fn unreadable(error: Error) -> Error {
    let hint = "give a shared library, or the directory of a ROCm, as /opt/rocm";
    Error::usage(&error, hint).caused_by(error)
}
