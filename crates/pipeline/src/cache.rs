//! The cache of a build. If it can't be written, it is read, and what is compiled
//! goes to a temporary one.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gfxpack_compile::{Cancel, FileDigests, Limits, ObjectStore, STORE_VERSION};
use gfxpack_plan::arguments;
use gfxpack_process::{Identity, ScratchDir, temporary_dir};
use gfxpack_toolchain::{Search, Toolchains};

use crate::error::{self, Result};
use crate::options::{CacheArgs, Purpose};
use crate::outputs::{FileRecords, Outputs};
use crate::progress::Progress;
use crate::text::{counted, size};

/// What a build keeps between runs.
pub struct Cache {
    pub(crate) store: ObjectStore,
    /// Digests of files, by path and stat data.
    pub(crate) digests: FileDigests,
    pub(crate) scratch: PathBuf,
    /// The directory for files that later runs reuse.
    pub(crate) dir: PathBuf,
    /// Whether later runs may reuse what this one learns and makes.
    pub(crate) writable: bool,
    /// Whether earlier runs' records of outputs are ignored.
    verify_all: bool,
    /// Size to which the store is reduced after the build, in bytes.
    limit: Option<u64>,
    /// What the user should be warned about.
    pub warning: Option<String>,
    _temporary: Option<ScratchDir>,
}

impl Cache {
    /// Opens the cache. With [`Purpose::Look`] nothing in it is made or changed.
    ///
    /// # Errors
    /// If the directory can't be used, or its limit is no size. One that can't be made or written is
    /// done without.
    pub fn open_for(options: &CacheArgs, purpose: Purpose) -> Result<Self> {
        let (dir, writable) = (options.dir.directory()?, purpose == Purpose::Build);
        let limit = if writable { options.dir.limit()? } else { None };
        let (store, temporary) = match purpose {
            Purpose::Look => (ObjectStore::open_to_look(&dir), Some(temporary_dir()?)),
            Purpose::Build => match ObjectStore::open(&dir) {
                Ok(store) => (store, None),
                // Another user's, or mounted read-only: its objects, if it has any, are still useful.
                Err(error) if error.io_kind().is_some_and(is_read_only) => {
                    let temporary = temporary_dir()?;
                    (ObjectStore::open_above(&dir, temporary.path())?, Some(temporary))
                }
                Err(error) => return Err(error),
            },
        };
        let warning = temporary.as_ref().filter(|_| writable).map(|_| {
            let what = if dir.is_dir() { "written: it is read, and" } else { "created:" };
            let dir = dir.display();
            format!(
                "the cache in `{dir}` can't be {what} what is compiled now is kept for this run \
                 only"
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
            limit,
            warning,
            _temporary: temporary,
        })
    }

    /// The toolchains of this machine. What is learnt about them is kept if the
    /// cache may be written.
    pub fn toolchains<'a>(
        &'a self,
        search: &'a Search,
        cancel: &'a Cancel,
    ) -> Result<Toolchains<'a>> {
        let kept = (&*self.dir, self.writable);
        let trial = arguments::plain;
        Toolchains::find(search, &self.digests, kept, &self.scratch, trial, cancel)
    }

    /// The records of the files in an output directory.
    pub(crate) fn outputs(&self, out: &Path) -> Result<Outputs<'_>> {
        let records = FileRecords::below(&self.dir, &self.digests, self.verify_all);
        Outputs::in_dir(out, records).map_err(error::io("find", out))
    }

    /// Reduces the store to its limit. Call it when all outputs are written.
    /// Errors are only warnings: the build is done.
    pub fn shrink(&self, progress: &dyn Progress) {
        let Some(limit) = self.limit.filter(|_| self.warning.is_none()) else { return };
        match self.store.evict(&Limits { size: Some(limit), ..Limits::default() }) {
            Ok(Some(evicted)) if evicted.files > 0 => {
                let (files, bytes) = (counted(evicted.files, "file"), size(evicted.bytes));
                progress.info(&format!("evicted {files} from the cache, {bytes}"));
            }
            // Another process is building and will evict.
            Ok(_) => {}
            Err(error) => progress.warning(&error::in_full(&error)),
        }
    }
}

/// Rejects a directory in which sources can't be compiled: clang can't make
/// temporary files there, or `a.h` would overwrite `A.h`.
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

/// Whether the file system finds the path under the same name in the other case.
pub(crate) fn ignores_case(path: &Path) -> bool {
    let swapped = |c: char| {
        if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() }
    };
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return false };
    let other: String = name.chars().map(swapped).collect();
    let file_id =
        |path: &Path| path.metadata().ok().map(|meta| Identity::from_metadata(&meta).file_id());
    other != name
        && file_id(path).is_some_and(|own| file_id(&path.with_file_name(other)) == Some(own))
}

fn is_read_only(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_ignores_case_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let version = dir.path().join(STORE_VERSION);
        std::fs::create_dir(&version).unwrap();
        check_directory(dir.path()).unwrap();
        let other = dir.path().join(STORE_VERSION.to_uppercase());
        std::fs::create_dir(&other).unwrap();
        check_directory(dir.path()).unwrap();
        std::fs::remove_dir(&other).unwrap();
        // Simulates a file system that ignores case.
        std::os::unix::fs::symlink(&version, &other).unwrap();
        let error = check_directory(dir.path()).unwrap_err();
        assert_eq!(error.kind().exit_code(), 2);
        assert!(error.to_string().ends_with("takes `a.h` for `A.h`"), "{error}");
    }
}
