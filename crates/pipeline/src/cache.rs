//! The cache of a build: opened to be written, or, where it can't be, read
//! below one that lasts as long as the build.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gfxpack_compile::{Cancel, CompileError, FileDigests, Limits, ObjectStore, STORE_VERSION};
use gfxpack_plan::arguments;
use gfxpack_process::{FileError, Identity, temporary_dir};
use gfxpack_toolchain::{Search, ToolchainError, Toolchains};
use tempfile::TempDir;

use crate::error::{self, Error, Result};
use crate::options::{CacheOptions, Purpose};
use crate::outputs::{FileRecords, Outputs};
use crate::progress::{Event, Progress};

/// What a build keeps between runs.
pub struct Cache {
    /// The compiled objects.
    pub store: ObjectStore,
    /// Files' digests, by their identity.
    pub digests: FileDigests,
    /// Where scratch directories are made.
    pub scratch: PathBuf,
    /// Where what is worth keeping lies.
    pub(crate) dir: PathBuf,
    /// Whether what is learnt and made may be kept.
    pub(crate) writable: bool,
    /// Whether every output is read again.
    verify_all: bool,
    /// Bytes that the store may have when the build is done.
    limit: Option<u64>,
    /// What the user should hear.
    pub warning: Option<String>,
    _temporary: Option<TempDir>,
}

impl Cache {
    /// The cache to build with; or as it is, with nothing made or changed in it.
    ///
    /// # Errors
    /// Where the directory can't be made, or not be used at all.
    pub fn open_for(options: &CacheOptions, purpose: Purpose) -> Result<Self> {
        let (dir, writable) = (options.directory()?, purpose == Purpose::Build);
        let open = || match ObjectStore::open(&dir) {
            Ok(store) => Ok((store, None)),
            // Somebody else's, or mounted to be read only: what is there is of use.
            Err(error) if dir.is_dir() && is_read_only(&error) => {
                let temporary = temporary_dir()?;
                Ok((ObjectStore::open_above(&dir, temporary.path())?, Some(temporary)))
            }
            Err(error) => Err(Error::from(error)),
        };
        let (store, temporary) = match purpose {
            Purpose::Build => open()?,
            Purpose::Look => (ObjectStore::open_to_look(&dir), Some(temporary_dir()?)),
        };
        let warning = temporary.as_ref().filter(|_| writable).map(|_| {
            format!(
                "the cache in `{}` can't be written: it is read, and what is compiled now is \
                 kept for this run only",
                dir.display()
            )
        });
        let scratch = temporary.as_ref().map_or_else(|| dir.clone(), |dir| dir.path().to_owned());
        if writable {
            check_directory(&scratch)?;
        }
        Ok(Self {
            store,
            digests: options.file_digests(&dir),
            dir: if writable { scratch.clone() } else { dir },
            scratch,
            writable,
            verify_all: options.verify_all,
            limit: options.size.filter(|_| writable),
            warning,
            _temporary: temporary,
        })
    }

    /// The toolchains of this machine; what is learnt of them is kept if it
    /// may be.
    pub fn toolchains<'a>(
        &'a self,
        search: &'a Search,
        cancel: &'a Cancel,
    ) -> Result<Toolchains<'a>, ToolchainError> {
        let kept = (&*self.dir, self.writable);
        let trial = arguments::plain;
        Toolchains::find(search, &self.digests, kept, &self.scratch, trial, cancel)
    }

    /// What is known of the files in a directory that is built into.
    pub(crate) fn outputs(&self, out: &Path) -> Result<Outputs<'_>> {
        let records = FileRecords::below(&self.dir, &self.digests, self.verify_all);
        Outputs::in_dir(out, records).map_err(error::io("find", out))
    }

    /// Brings the store down to its limit, once all that was made is where
    /// it belongs. Never an error: the build is done.
    pub fn shrink(&self, progress: &dyn Progress) {
        let Some(limit) = self.limit.filter(|_| self.warning.is_none()) else { return };
        match self.store.evict(&Limits { size: Some(limit), ..Limits::default() }) {
            Ok(Some(evicted)) if evicted.files > 0 => {
                let (files, bytes) = (evicted.files, evicted.bytes);
                progress.event(Event::Evicted { files, bytes });
            }
            // Whoever else builds now will evict.
            Ok(_) => {}
            Err(error) => progress.warning(&error::in_full(&error)),
        }
    }
}

/// Refuses a directory in which sources can't be compiled: clang can't make
/// temporary files there, or `a.h` would be laid out over `A.h`.
///
/// Source: LLVM, `llvm/lib/Support/Path.cpp`, `createUniquePath`.
fn check_directory(scratch: &Path) -> Result<()> {
    let real = std::fs::canonicalize(scratch).map_err(error::io("find", scratch))?;
    let refused = |reason, hint| {
        Err(error::usage(format!("failed to compile in `{}`: {reason}", real.display()), hint))
    };
    if real.as_os_str().as_encoded_bytes().contains(&b'%') {
        return refused(
            "clang replaces `%` in a path by digits",
            "give another cache directory with --cache-dir",
        );
    }
    if ignores_case(&scratch.join(STORE_VERSION)) {
        return refused(
            "its file system takes `a.h` for `A.h`",
            "give a cache directory with --cache-dir on a file system that tells the two apart, \
             as those of Linux do: not one of Windows or macOS that a container has mounted",
        );
    }
    Ok(())
}

/// Whether what lies at a path has the same name there with small letters for
/// capitals and the other way round.
pub(crate) fn ignores_case(path: &Path) -> bool {
    let swapped = |c: char| match c.is_ascii_uppercase() {
        true => c.to_ascii_lowercase(),
        false => c.to_ascii_uppercase(),
    };
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return false };
    let other: String = name.chars().map(swapped).collect();
    let place =
        |path: &Path| path.metadata().ok().map(|meta| Identity::from_metadata(&meta).place());
    other != name && place(path).is_some_and(|own| place(&path.with_file_name(other)) == Some(own))
}

fn is_read_only(error: &CompileError) -> bool {
    let read_only =
        |kind| matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
    matches!(error, CompileError::File(FileError::Io { source, .. }) if read_only(source.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_takes_a_name_for_another_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let version = dir.path().join(STORE_VERSION);
        std::fs::create_dir(&version).unwrap();
        check_directory(dir.path()).unwrap();
        let other = dir.path().join(STORE_VERSION.to_uppercase());
        std::fs::create_dir(&other).unwrap();
        check_directory(dir.path()).unwrap();
        std::fs::remove_dir(&other).unwrap();
        // As on a file system that ignores case.
        std::os::unix::fs::symlink(&version, &other).unwrap();
        let error = check_directory(dir.path()).unwrap_err();
        assert_eq!(error.kind().exit_code(), 2);
        assert!(error.to_string().ends_with("takes `a.h` for `A.h`"), "{error}");
    }
}
