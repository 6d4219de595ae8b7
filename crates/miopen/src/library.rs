//! A libMIOpen on this machine: installed, unpacked, or fetched.

mod needs;
mod tree;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gfxpack_plan::Digest;
use sha2::{Digest as _, Sha256};

use crate::elf::{self, ElfError};

pub(crate) use needs::file_of;
pub use needs::{Needs, is_stood_in};

/// What MIOpen prints before its version.
///
/// Source: MIOpen 3.3 (2d1fd997a), src/execution_context.cpp,
/// `ExecutionContext::ExecutionContext` (`LogRange` of the library's versions).
const VERSION_MARK: &[u8] = b", MIOpen version ";

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

/// Where to take a libMIOpen from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LibrarySource {
    /// The one that is installed on this machine.
    Installed,
    /// A shared object, or a directory with an installed or unpacked ROCm.
    Path(PathBuf),
}

/// The text names no place of a libMIOpen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read `{0}` as the place of a libMIOpen")]
pub struct LibrarySourceError(String);

/// Why there is no libMIOpen to ask.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// Neither `/opt/rocm` nor the system's directories have one.
    #[error("found no installed libMIOpen in {}", shown(.searched))]
    NotInstalled {
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
    /// The given directory has none at any of the usual places.
    #[error("found no libMIOpen in `{dir}`")]
    NotInDirectory {
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
    /// The file is a shared library of something else.
    #[error("`{path}` is not MIOpen: it does not define `miopenCreate`")]
    NotMiopen {
        /// The file.
        path: PathBuf,
    },
    /// The library is for another kind of processor.
    #[error("`{path}` is built for another processor than this machine's")]
    OtherMachine {
        /// The file.
        path: PathBuf,
    },
}

impl FromStr for LibrarySource {
    type Err = LibrarySourceError;

    /// A path to a file or directory.
    fn from_str(text: &str) -> Result<Self, LibrarySourceError> {
        if text.is_empty() {
            return Err(LibrarySourceError(text.to_owned()));
        }
        Ok(Self::Path(text.into()))
    }
}

impl Library {
    /// Finds a libMIOpen. `rocm` is the directory of an installed ROCm that
    /// is looked into before the usual ones, as ROCM_PATH names it.
    ///
    /// In a tree that brings its own dynamic loader, loader and libraries are
    /// that tree's; otherwise they are the system's, after those of the tree.
    ///
    /// # Errors
    /// [`LibraryError`], where there is none, or where it is none for this
    /// machine.
    pub fn locate(source: &LibrarySource, rocm: Option<&Path>) -> Result<Self, LibraryError> {
        match source {
            LibrarySource::Installed => Self::installed(rocm),
            LibrarySource::Path(path) => {
                let io = |source| LibraryError::Io { path: path.clone(), source };
                let path = std::path::absolute(path).map_err(io)?;
                let is_dir = path.metadata().map_err(io)?.is_dir();
                if !is_dir {
                    return Self::at(&path, None);
                }
                let file = tree::library(&path);
                let file =
                    file.ok_or_else(|| LibraryError::NotInDirectory { dir: path.clone() })?;
                Self::at(&file, Some(&path))
            }
        }
    }

    fn installed(rocm: Option<&Path>) -> Result<Self, LibraryError> {
        let searched = tree::installed(rocm);
        let found = searched.iter().find_map(|dir| Some((tree::library(dir)?, dir)));
        let Some((file, dir)) = found else {
            return Err(LibraryError::NotInstalled { searched });
        };
        Self::at(&file, Some(dir))
    }

    /// The library at `path`, in the tree below `root` where that is known.
    fn at(path: &Path, root: Option<&Path>) -> Result<Self, LibraryError> {
        let io = |source| LibraryError::Io { path: path.to_owned(), source };
        let file = path.canonicalize().map_err(io)?;
        let open = elf::Library::open(&file)?;
        let object = open.shared_object()?;
        if Some(object.machine) != elf::own_machine() {
            return Err(LibraryError::OtherMachine { path: path.to_owned() });
        }
        if !object.defined.contains("miopenCreate") {
            return Err(LibraryError::NotMiopen { path: path.to_owned() });
        }
        let root = match root {
            Some(root) => root.canonicalize().map_err(io)?,
            None => tree::root(&file).to_owned(),
        };
        let system = tree::is_system(&root);
        let dirs = if system { Vec::new() } else { tree::library_dirs(&root, &file) };
        let version = match version(&open.constants()?) {
            Some(version) => Some(version),
            None => tree::header_version(&root),
        };
        Ok(Self {
            sha256: sha256(&file).map_err(io)?,
            version,
            origin: file.display().to_string(),
            search_path: needs::search_path(&object, &dirs),
            loader: tree::loader(&dirs),
            driver: tree::driver(&root),
            databases: tree::databases(&root),
            file,
        })
    }

    /// What the library needs from others, and what of it nobody here
    /// supplies.
    ///
    /// # Errors
    /// [`ElfError`], for a library that cannot be read.
    pub fn needs(&self) -> Result<Needs, ElfError> {
        Needs::of(&self.file, &self.search_path)
    }
}

/// The version in `, MIOpen version 3.4.0.` or `… 3.3.0.2d1fd997a`.
fn version(constants: &[u8]) -> Option<String> {
    let at = memchr::memmem::find(constants, VERSION_MARK)? + VERSION_MARK.len();
    let text = constants.get(at..at + 32).unwrap_or(&constants[at..]);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let text = std::str::from_utf8(&text[..digits]).ok()?;
    let numbers: Vec<&str> = text.split('.').filter(|number| !number.is_empty()).collect();
    // The fourth is the commit, of which digits may be left here.
    (numbers.len() >= 3).then(|| numbers[..3].join("."))
}

fn sha256(file: &Path) -> io::Result<Digest> {
    let mut file = File::open(file)?;
    let mut sha256 = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::from_bytes(sha256.finalize().into())),
            read => sha256.update(&buffer[..read]),
        }
    }
}

fn shown(dirs: &[PathBuf]) -> String {
    let dirs: Vec<_> = dirs.iter().map(|dir| format!("`{}`", dir.display())).collect();
    dirs.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_the_library_logs() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(version(text.as_bytes()).as_deref(), expected, "{text:?}");
        };
        check("\0, HIP version 6.4.0, MIOpen version 3.4.0.\0x", Some("3.4.0"));
        check(", MIOpen version 3.3.0.2d1fd997a-dirty\0", Some("3.3.0"));
        check(", MIOpen version 3.10.21", Some("3.10.21"));
        check(", MIOpen version 3.4\0", None);
        check(", MIOpen version \0", None);
        check("MIOpen", None);
    }
}
