//! The cache of a build: opened to be written, or, where it can't be, read
//! below one that lasts as long as the build.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gfxpack_compile::{Cancel, CompileError, FileDigests, Limits, ObjectStore};
use gfxpack_plan::arguments;
use gfxpack_toolchain::{Search, ToolchainError, Toolchains};
use tempfile::TempDir;

use crate::args::{CacheArgs, CacheDir};
use crate::environment::Environment;
use crate::fail;
use crate::output::{Output, size};
use crate::outputs::Outputs;

/// What a build keeps between runs.
pub(crate) struct Cache {
    pub(crate) store: ObjectStore,
    pub(crate) digests: FileDigests,
    /// Where scratch directories are made.
    pub(crate) scratch: PathBuf,
    /// Where what is worth keeping lies.
    pub(crate) dir: PathBuf,
    writable: bool,
    /// Bytes that the store may have when the build is done.
    limit: Option<u64>,
    /// What the user should hear.
    pub(crate) warning: Option<String>,
    _temporary: Option<TempDir>,
}

/// The cache directory, which need not exist.
pub(crate) fn dir(args: &CacheDir, environment: &Environment) -> anyhow::Result<PathBuf> {
    let dir =
        args.cache_dir.clone().or_else(|| environment.cache_dir.clone()).ok_or_else(|| {
            fail::usage(
                "failed to find a cache directory: neither HOME nor XDG_CACHE_HOME is set",
                "give one with --cache-dir",
            )
        })?;
    std::path::absolute(&dir).map_err(fail::io("find", &dir))
}

impl Cache {
    /// The cache to build with.
    pub(crate) fn open(args: &CacheArgs, environment: &Environment) -> anyhow::Result<Self> {
        let dir = dir(&args.dir, environment)?;
        let limit =
            args.cache_size.map_or_else(|| environment.cache_size(), |size| Ok(Some(size)))?;
        let (store, temporary) = match ObjectStore::open(&dir) {
            Ok(store) => (store, None),
            // Somebody else's, or mounted to be read only: what is there is of use.
            Err(error) if dir.is_dir() && is_read_only(&error) => {
                let temporary = fail::temporary_dir()?;
                (ObjectStore::open_above(&dir, temporary.path())?, Some(temporary))
            }
            Err(error) => return Err(error.into()),
        };
        let warning = temporary.as_ref().map(|_| {
            format!(
                "the cache in `{}` can't be written: it is read, and what is compiled now is \
                 kept for this run only",
                dir.display()
            )
        });
        let scratch = temporary.as_ref().map_or_else(|| dir.clone(), |dir| dir.path().to_owned());
        let digests = FileDigests::open(&dir.join("file-digests.json"));
        let writable = true;
        let kept = scratch.clone();
        Ok(Self {
            store,
            digests,
            scratch,
            dir: kept,
            writable,
            limit,
            warning,
            _temporary: temporary,
        })
    }

    /// The cache as it is: nothing is made or changed in it.
    pub(crate) fn open_to_look(
        args: &CacheArgs,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let dir = dir(&args.dir, environment)?;
        let temporary = fail::temporary_dir()?;
        Ok(Self {
            store: ObjectStore::open_to_look(&dir),
            digests: FileDigests::open(&dir.join("file-digests.json")),
            scratch: temporary.path().to_owned(),
            dir,
            writable: false,
            limit: None,
            warning: None,
            _temporary: Some(temporary),
        })
    }

    /// The toolchains of this machine; what is learnt of them is kept if it
    /// may be.
    pub(crate) fn toolchains<'a>(
        &'a self,
        search: &'a Search,
        cancel: &'a Cancel,
    ) -> Result<Toolchains<'a>, ToolchainError> {
        let kept = (&*self.dir, self.writable);
        let trial = arguments::plain;
        Toolchains::find(search, &self.digests, kept, &self.scratch, trial, cancel)
    }

    /// Whether what is learnt and made may be kept.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// What is known of the files in a directory that is built into.
    pub(crate) fn outputs(&self, out: &Path) -> anyhow::Result<Outputs> {
        Outputs::of(out, &self.dir).map_err(fail::io("find", out))
    }

    /// Brings the store down to its limit, once all that was made is where
    /// it belongs. Never an error: the build is done.
    pub(crate) fn shrink(&self, output: &Output) {
        let Some(limit) = self.limit.filter(|_| self.warning.is_none()) else { return };
        match self.store.evict(&Limits { size: Some(limit), ..Limits::default() }) {
            Ok(Some(evicted)) if evicted.files > 0 => output.say(&format!(
                "evicted {} files from the cache, {}",
                evicted.files,
                size(evicted.bytes)
            )),
            // Whoever else builds now will evict.
            Ok(_) => {}
            Err(error) => output.warn(&fail::in_full(&error)),
        }
    }
}

fn is_read_only(error: &CompileError) -> bool {
    let read_only =
        |kind| matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
    matches!(error, CompileError::Io { source, .. } if read_only(source.kind()))
}

/// The cache directory of a command about the cache alone, which must exist.
pub(crate) fn existing(args: &CacheDir, environment: &Environment) -> anyhow::Result<PathBuf> {
    let dir = dir(args, environment)?;
    existing_dir(&dir).map(|()| dir.clone())
}

fn existing_dir(dir: &Path) -> anyhow::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    Err(fail::usage(
        format!("failed to find the cache `{}`", dir.display()),
        "the first build makes it; --cache-dir names another one",
    ))
}
