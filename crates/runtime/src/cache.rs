//! The cache as a whole: which layer is searched when, and what is kept.

use std::cell::Cell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gfxpack_kdb::{MAX_OBJECT_BYTES, UserOptions};
use gfxpack_model::code_object::{self, CodeObjectError, loaded_by};
use gfxpack_model::{KernelKey, TargetId, in_full, processors};

use crate::compile_once::{CompileOnce, Role};
use crate::config::{Config, LookupOrder};
use crate::directories::UserDirectory;
use crate::installed_kdbs::{SystemFile, file_names};
use crate::lookup::{CodeObject, Hit, Kernel, Layer, Lookup, NotStored, Origin};
use crate::memory_cache::Memory;
use crate::miss::{Miss, MissReason};
use crate::per_process::PerProcess;
use crate::user::UserFile;
use crate::warning::{WarningClass, Warnings};

/// Finds kernels, and keeps those that had to be compiled. Clones share one
/// cache; any number of threads may use it. A process made by `fork` can use it
/// too: it opens the files again, and leaves its parent's alone.
#[derive(Clone)]
pub struct KernelCache {
    shared: Arc<Shared>,
}

struct Shared {
    config: Arc<Config>,
    /// All parts with mutexes, connections and locks.
    inner: PerProcess<Inner>,
}

struct Inner {
    config: Arc<Config>,
    /// What code objects must be for: the device, with XNACK off if that is unspecified, as in the
    /// names of the files.
    device: TargetId,
    warnings: Warnings,
    memory: Memory,
    system: Vec<SystemFile>,
    /// The user's file, into which kernels are stored.
    user: Option<UserFile>,
    /// Users' files that can only be read.
    read_only: Vec<UserFile>,
    compiling: CompileOnce,
}

impl fmt::Debug for KernelCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelCache").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

impl KernelCache {
    /// Opens the cache. This never fails and reads no file. Problems with a
    /// directory or file are warnings, and misses of the lookups that need it.
    pub fn open(config: Config) -> Self {
        let shared = Shared { config: Arc::new(config), inner: PerProcess::new() };
        let cache = Self { shared: Arc::new(shared) };
        cache.inner();
        cache
    }

    /// The state of this process.
    fn inner(&self) -> &Inner {
        let Shared { config, inner } = &*self.shared;
        inner.get(|parent| Inner::new(config, parent))
    }

    /// The configuration with which the cache was opened.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The files that lookups search, in order, whether they exist or not.
    pub fn files(&self) -> Vec<(Layer, PathBuf)> {
        let inner = self.inner();
        let system = inner.system.iter().map(|file| (Layer::System, file.path().to_owned()));
        let users = inner.user.iter().chain(&inner.read_only);
        let user = users.map(|file| (Layer::User, file.path()));
        match inner.config.order {
            LookupOrder::SystemFirst => system.chain(user).collect(),
            LookupOrder::UserFirst => user.chain(system).collect(),
        }
    }

    /// Looks a key up in all files. Returns the kernel from the first file that
    /// has it undamaged.
    pub fn get(&self, key: &KernelKey) -> Lookup {
        let inner = self.inner();
        inner.get(key, &Cell::new(inner.config.limits.busy_wait))
    }

    /// Looks a key up; if no file has it, compiles and stores the kernel.
    ///
    /// Threads and processes that want the same key at the same time wait for
    /// the first one, up to [`Limits::compile_wait`](crate::Limits). The
    /// compiler's result is returned whether it can be stored or not.
    ///
    /// # Errors
    /// The error of `compile`, and nothing else.
    pub fn get_or_compile<E>(
        &self,
        key: &KernelKey,
        compile: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Kernel, E> {
        let inner = self.inner();
        // What is left of the time that this call may wait for others.
        let wait_budget = Cell::new(inner.config.limits.busy_wait);
        let Lookup { found, misses } = inner.get(key, &wait_budget);
        if let Some(found) = found {
            return Ok(Kernel::found(found, misses));
        }
        let promise = match inner.compiling.join(key, inner.config.limits.compile_wait) {
            Role::Done(code_object) => {
                let found = Hit { layer: Layer::Memory, file: None, code_object };
                return Ok(Kernel::found(found, misses));
            }
            Role::Compile(promise) => Some(promise),
            Role::Alone => None,
        };
        // With `Role::Alone`, this thread most likely holds the lock already.
        let user = inner.user.as_ref().filter(|_| promise.is_some() && !inner.config.look_only);
        let held = user.and_then(|user| user.lock_key(key, inner.config.limits.compile_wait));
        let user = || inner.user(key, &wait_budget, &mut Vec::new());
        let kernel = match inner.memory(key).or_else(user) {
            // Another thread or process has just compiled it.
            Some(found) => Kernel::found(found, misses),
            None => {
                let code_object = CodeObject::from(compile()?);
                // If the compiler forks, its child may return here too.
                let not_stored = self.inner().keep(key, &code_object, &wait_budget).err();
                Kernel { code_object, origin: Origin::Compiled, not_stored, misses }
            }
        };
        drop(held);
        if let Some(promise) = promise {
            promise.fulfil(&kernel.code_object);
        }
        Ok(kernel)
    }
}

impl Kernel {
    fn found(found: Hit, misses: Vec<Miss>) -> Self {
        let Hit { layer, file, code_object } = found;
        let origin = match (layer, file) {
            (Layer::System, Some(file)) => Origin::System(file),
            (Layer::User, Some(file)) => Origin::User(file),
            _ => Origin::Memory,
        };
        Self { code_object, origin, not_stored: None, misses }
    }
}

impl Inner {
    /// A problem with a directory is reported once: a child process does not
    /// repeat it.
    fn new(config: &Arc<Config>, parent: Option<&Self>) -> Self {
        let limits = &config.limits;
        let directories = &config.directories;
        let warnings = match parent {
            None => Warnings::new(config.warnings.clone(), config.log_level),
            Some(parent) => parent.warnings.inherited(),
        };
        let system = match &config.only_system_file {
            Some(file) => vec![SystemFile::new(file.clone())],
            None => {
                let names = file_names(&config.target);
                let files = |dir: &Path| {
                    names.iter().map(|name| SystemFile::new(dir.join(name))).collect::<Vec<_>>()
                };
                // An empty or relative path would mean the working directory.
                directories.system_dirs().filter(|dir| dir.is_absolute()).flat_map(files).collect()
            }
        };
        let user_file = |directory: &PathBuf| {
            let mut options = UserOptions::default();
            options.limit_bytes = limits.user_cache_bytes;
            options.busy = limits.busy_wait;
            options.look_only = config.look_only;
            let name = config.target.ukdb_file_name();
            UserFile::new(directory.clone(), name, options, directories.temp_dir.clone())
        };
        let own = match &directories.user {
            UserDirectory::Dir(directory) => Some(directory),
            _ => None,
        };
        let read_only = directories.read_only.iter().map(user_file).collect();
        if let (Some(text), None) = (&directories.fallback, parent) {
            let hint = "set MIOPEN_CUSTOM_CACHE_DIR to a directory of your own to choose another";
            let directory = own.map_or(Path::new(""), PathBuf::as_path);
            warnings.fault(WarningClass::UserDirectory, directory, text, hint);
        }
        Self {
            device: loaded_by(config.target.id()),
            warnings,
            memory: match parent {
                None => Memory::new(limits.memory_bytes),
                Some(parent) => parent.memory.inherited(),
            },
            system,
            user: own.map(user_file),
            read_only,
            compiling: CompileOnce::default(),
            config: Arc::clone(config),
        }
    }

    fn get(&self, key: &KernelKey, wait_budget: &Cell<Duration>) -> Lookup {
        let mut misses = Vec::new();
        let found = self.memory(key).or_else(|| match self.config.order {
            LookupOrder::SystemFirst => {
                self.system(key, &mut misses).or_else(|| self.user(key, wait_budget, &mut misses))
            }
            LookupOrder::UserFirst => {
                self.user(key, wait_budget, &mut misses).or_else(|| self.system(key, &mut misses))
            }
        });
        if self.config.keep_hits
            && let Some(Hit { file: Some(_), code_object, .. }) = &found
        {
            self.memory.put(key, code_object);
        }
        Lookup { found, misses }
    }

    fn memory(&self, key: &KernelKey) -> Option<Hit> {
        let code_object = self.memory.get(key)?;
        Some(Hit { layer: Layer::Memory, file: None, code_object })
    }

    fn system(&self, key: &KernelKey, misses: &mut Vec<Miss>) -> Option<Hit> {
        let before = misses.len();
        for file in &self.system {
            let answer = file.get(key);
            if let Some(found) = self.judge(Layer::System, file.path(), key, answer, misses) {
                return Some(found);
            }
        }
        let absent = |miss: &Miss| matches!(miss.reason, MissReason::NoFile);
        if misses[before..].iter().all(absent) && !self.config.directories.system_disabled {
            let name = PathBuf::from(self.config.target.kdb_file_name());
            let first = self.system.first().map_or(name, |file| file.path().to_owned());
            self.warnings.missing_system_kdb(&first, &self.config.target);
        }
        None
    }

    fn user(
        &self,
        key: &KernelKey,
        wait_budget: &Cell<Duration>,
        misses: &mut Vec<Miss>,
    ) -> Option<Hit> {
        self.user.iter().chain(&self.read_only).find_map(|file| {
            let answer = file.get(key, wait_budget);
            self.judge(Layer::User, &file.path(), key, answer, misses)
        })
    }

    /// Returns the kernel if it is for this device. Otherwise records a miss,
    /// and warns if something is wrong.
    fn judge(
        &self,
        layer: Layer,
        file: &Path,
        key: &KernelKey,
        answer: Result<Vec<u8>, MissReason>,
        misses: &mut Vec<Miss>,
    ) -> Option<Hit> {
        let accepted = answer.and_then(|bytes| {
            self.check_target(&bytes)?;
            Ok(bytes)
        });
        match accepted {
            Ok(bytes) => {
                let code_object = CodeObject::from(bytes);
                Some(Hit { layer, file: Some(file.to_owned()), code_object })
            }
            Err(reason) => {
                tracing::debug!(file = %file.display(), %key, reason = reason.name(), "kernel miss");
                self.warnings.miss(file, &reason);
                misses.push(Miss { layer, file: file.to_owned(), reason });
                None
            }
        }
    }

    /// Why the bytes must not be returned to the caller, if they are no code for the device.
    fn check_target(&self, code_object: &[u8]) -> Result<(), MissReason> {
        match code_object::targets(code_object) {
            Ok(targets) if targets.iter().any(|target| target.serves(&self.device)) => Ok(()),
            Ok(targets) => Err(MissReason::OtherTarget(targets)),
            // A device newer than the table of processors: its number can't be checked, but the key
            // names it.
            Err(CodeObjectError::Processor(_))
                if processors::by_name(self.device.processor()).is_none() =>
            {
                Ok(())
            }
            Err(error) => Err(MissReason::NoCodeObject(error)),
        }
    }

    /// Stores a compiled kernel, or else keeps it in memory.
    fn keep(
        &self,
        key: &KernelKey,
        code_object: &CodeObject,
        wait_budget: &Cell<Duration>,
    ) -> Result<(), NotStored> {
        if let UserDirectory::Disabled(why) = &self.config.directories.user {
            return Err(NotStored::NoUserCache(why.clone()));
        }
        self.check_target(code_object).map_err(NotStored::Refused)?;
        let stored = self.store(key, code_object, wait_budget);
        if stored.is_err() || self.config.keep_hits {
            self.memory.put(key, code_object);
        }
        stored
    }

    fn store(
        &self,
        key: &KernelKey,
        code_object: &CodeObject,
        wait_budget: &Cell<Duration>,
    ) -> Result<(), NotStored> {
        let Some(user) = &self.user else {
            let why = match &self.config.directories.user {
                UserDirectory::Memory(why) => why.clone(),
                _ => "there is no place for it".to_owned(),
            };
            return Err(NotStored::NoUserCache(why));
        };
        if self.config.look_only {
            return Err(NotStored::NoUserCache("nothing on disk is to be changed".to_owned()));
        }
        let (size, limits) = (code_object.len() as u64, &self.config.limits);
        let limit = limits.user_cache_bytes.min(MAX_OBJECT_BYTES);
        if size > limit {
            return Err(NotStored::TooLarge { size, limit });
        }
        let path = user.path();
        let moved_aside = |reason: &MissReason| self.warnings.miss(&path, reason);
        user.store(key, code_object, wait_budget, moved_aside).map_err(|error| {
            let not_stored = NotStored::Failed(Box::new(error));
            let hint = not_stored.hint();
            self.warnings.fault(WarningClass::NotStored, &path, &in_full(&not_stored), hint);
            not_stored
        })
    }
}
