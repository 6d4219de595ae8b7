//! A libMIOpen on this machine: installed, unpacked, or fetched.

mod debian;
mod needs;
mod tree;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gfxpack_debian::{Archive, DebianError, Lock};
use gfxpack_model::Digest;
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
    /// Where it comes from, for people, with the package of its databases if
    /// there is one: `Debian sid, libmiopen1 6.4.3+dfsg-1`.
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
    /// Debian's package, fetched.
    Debian {
        /// `sid`, `experimental`.
        suite: String,
        /// The package's version; the newest where none is given.
        version: Option<String>,
    },
    /// The packages of Debian's archive that a file pins by their digests.
    Lock(PathBuf),
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
    /// Debian's archive does not give it.
    #[error(transparent)]
    Debian(#[from] DebianError),
    /// No package that MIOpen's depends on has a library that it needs.
    #[error("found `{soname}`, which `{file}` needs, in no package that `{package}` depends on")]
    NoDependency {
        /// The library that is missing.
        soname: String,
        /// Who needs it.
        file: PathBuf,
        /// The package of that.
        package: String,
    },
    /// The library is for another kind of processor.
    #[error("`{path}` is built for another processor than this machine's")]
    OtherMachine {
        /// The file.
        path: PathBuf,
    },
}

impl LibraryError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotInstalled { .. } => {
                "name one: --miopen debian:sid fetches Debian's, --miopen DIR takes an unpacked one"
            }
            Self::NotInDirectory { .. } => {
                "give the libMIOpen.so itself, or the directory of a ROCm, as /opt/rocm"
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check the permissions of the file and of the directories above it"
            }
            Self::Io { .. } => "check the path",
            Self::Elf(_) | Self::NotMiopen { .. } => {
                "give a libMIOpen.so, or the directory of a ROCm, as /opt/rocm"
            }
            Self::Debian(error) => error.hint(),
            Self::NoDependency { .. } => {
                "unpack MIOpen and what it needs into a directory, and give that as --miopen DIR"
            }
            Self::OtherMachine { .. } => "give one that is built for this machine's processor",
        }
    }
}

impl FromStr for LibrarySource {
    type Err = LibrarySourceError;

    /// `debian:SUITE`, `debian:SUITE=VERSION`, `lock:FILE`, or a path to a
    /// file or directory.
    fn from_str(text: &str) -> Result<Self, LibrarySourceError> {
        let error = || LibrarySourceError(text.to_owned());
        if let Some(debian) = text.strip_prefix("debian:") {
            let (suite, version) = match debian.split_once('=') {
                Some((suite, version)) => (suite, Some(version.to_owned())),
                None => (debian, None),
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if suite.is_empty() || !suite.bytes().all(plain) || version.as_deref() == Some("") {
                return Err(error());
            }
            return Ok(Self::Debian { suite: suite.to_owned(), version });
        }
        match text.strip_prefix("lock:").unwrap_or(text) {
            "" => Err(error()),
            file if file.len() < text.len() => Ok(Self::Lock(file.into())),
            path => Ok(Self::Path(path.into())),
        }
    }
}

impl Library {
    /// Finds a libMIOpen. `rocm` is the directory of an installed ROCm that
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
        source: &LibrarySource,
        rocm: Option<&Path>,
        archive: &Archive<'_>,
    ) -> Result<Self, LibraryError> {
        match source {
            LibrarySource::Installed => Self::installed(rocm),
            LibrarySource::Debian { suite, version } => {
                let lock = debian::choose(archive, suite, version.as_deref())?;
                Self::pinned(&lock, archive)
            }
            LibrarySource::Lock(path) => Self::pinned(&Lock::read(path)?, archive),
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

    /// The library that is installed, as [`Self::locate`] finds it.
    ///
    /// # Errors
    /// [`LibraryError`], as there.
    pub fn installed(rocm: Option<&Path>) -> Result<Self, LibraryError> {
        let searched = tree::installed(rocm);
        let found = searched.iter().find_map(|dir| Some((tree::library(dir)?, dir)));
        let Some((file, dir)) = found else {
            return Err(LibraryError::NotInstalled { searched });
        };
        Self::at(&file, Some(dir))
    }

    /// The directory below `~/.cache/miopen` in which the library that is
    /// installed keeps kernels, as `3.4.0.`; `None` where there is none, or its
    /// version can't be told. Does not read the whole library, as
    /// [`Self::installed`] does.
    ///
    /// Source: MIOpen 3.3 (2d1fd997a), `ComputeUserCachePath` in binary_cache.cpp.
    #[must_use]
    pub fn installed_cache_version(rocm: Option<&Path>) -> Option<String> {
        let dirs = tree::installed(rocm).into_iter();
        let (file, root) =
            dirs.map(|dir| (tree::library(&dir), dir)).find(|(file, _)| file.is_some())?;
        let library = elf::Library::open(&file?);
        let constants = library.and_then(|library| library.constants()).ok();
        let own = constants.and_then(|constants| full_version(&constants));
        own.or_else(|| Some(format!("{}.", tree::header_version(&root)?)))
    }

    /// The library that pinned packages hold. Where the archive has gone on
    /// and does not have one of them any more, the suite's newest are taken,
    /// and `archive` is warned of it.
    ///
    /// # Errors
    /// [`LibraryError`], as [`Self::locate`].
    pub fn pinned(lock: &Lock, archive: &Archive<'_>) -> Result<Self, LibraryError> {
        debian::library(lock, archive)
    }

    /// Whether it lies in a multiarch directory, `usr/lib/<triplet>`, as Debian's
    /// does. It looks for kdbs in `usr/lib/share/miopen/db` then.
    #[must_use]
    pub fn is_multiarch(&self) -> bool {
        let directory = self.file.parent();
        let triplet = directory.and_then(|directory| directory.file_name()?.to_str());
        triplet.is_some_and(|name| name.contains("-linux-gnu"))
            && directory.and_then(Path::parent).is_some_and(|lib| lib.ends_with("usr/lib"))
    }

    /// The packages of Debian's archive that make a libMIOpen: its own, with
    /// MIOpenDriver and databases of the same version where there are, and
    /// those of the libraries that it needs and that are not stood in for.
    ///
    /// # Errors
    /// [`LibraryError`], as [`Self::locate`].
    pub fn choose(
        archive: &Archive<'_>,
        suite: &str,
        version: Option<&str>,
    ) -> Result<Lock, LibraryError> {
        debian::choose(archive, suite, version)
    }

    /// The library at `path`, in the tree below `root` where that is known.
    fn at(path: &Path, root: Option<&Path>) -> Result<Self, LibraryError> {
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
            dirs.extend(others.into_iter().filter(|dir| Some(dir.as_path()) != file.parent()));
        }
        describe(path, dirs, &[root], None)
    }

    /// Where the loader looks, behind a directory: `DIR:DIR`.
    pub(crate) fn search_path_behind(&self, first: &Path) -> OsString {
        let mut search_path = first.as_os_str().to_owned();
        for path in &self.search_path {
            search_path.push(":");
            search_path.push(path);
        }
        search_path
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

/// Looks at the library at `path`. `dirs` may have libraries that it needs,
/// `roots` what belongs to it.
fn describe(
    path: &Path,
    dirs: Vec<PathBuf>,
    roots: &[PathBuf],
    origin: Option<String>,
) -> Result<Library, LibraryError> {
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
    let version = version(&open.constants()?);
    let driver = roots.iter().find_map(|root| tree::driver(root));
    let driver_object = driver.as_ref().and_then(|driver| elf::Library::open(driver).ok());
    let driver_object = driver_object.and_then(|driver| driver.shared_object().ok());
    let objects: Vec<_> = std::iter::once(object).chain(driver_object).collect();
    Ok(Library {
        sha256: sha256(&file).map_err(io)?,
        version: version.or_else(|| roots.iter().find_map(|root| tree::header_version(root))),
        origin: origin.unwrap_or_else(|| file.display().to_string()),
        search_path: needs::search_path(&objects, &dirs),
        loader: tree::loader(&dirs),
        driver,
        databases: roots.iter().flat_map(|root| tree::databases(root)).collect(),
        file,
    })
}

/// The version in `, MIOpen version 3.3.0.2d1fd997a-dirty` with its last part,
/// which may be empty: `3.4.0.`.
fn full_version(constants: &[u8]) -> Option<String> {
    version(constants)?;
    let at = memchr::memmem::find(constants, VERSION_MARK)? + VERSION_MARK.len();
    let text = constants[at..].split(|byte| *byte == 0).next()?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+".contains(byte);
    let text = text.get(..text.len().min(64))?;
    if !text.iter().all(plain) {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
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
    fn a_library_is_named_by_place_or_package() {
        let check = |text: &str, expected: Option<LibrarySource>| {
            assert_eq!(text.parse().ok(), expected, "{text}");
        };
        let debian = |suite: &str, version: Option<&str>| {
            let (suite, version) = (suite.to_owned(), version.map(str::to_owned));
            Some(LibrarySource::Debian { suite, version })
        };
        check("/opt/rocm", Some(LibrarySource::Path("/opt/rocm".into())));
        check("./debian:sid", Some(LibrarySource::Path("./debian:sid".into())));
        check("debian:sid", debian("sid", None));
        check("debian:rc-buggy=1:2.0~a+b1", debian("rc-buggy", Some("1:2.0~a+b1")));
        check(
            "lock:packaging/miopen.lock",
            Some(LibrarySource::Lock("packaging/miopen.lock".into())),
        );
        for none in ["", "debian:", "debian:../sid", "debian:sid=", "debian:=1", "lock:"] {
            check(none, None);
        }
    }

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
        let full = |text: &str| full_version(text.as_bytes());
        assert_eq!(full(", MIOpen version 3.4.0.\0x").as_deref(), Some("3.4.0."));
        let dirty = ", MIOpen version 3.3.0.2d1fd997a-dirty\0";
        assert_eq!(full(dirty).as_deref(), Some("3.3.0.2d1fd997a-dirty"));
        assert_eq!(full(", MIOpen version 3.4.0./../x\0"), None);
    }
}
