//! The cache as a whole: which layer is asked when, and what is kept.

use std::sync::Arc;

use gfxpack_plan::KernelKey;

use crate::answer::{CodeObject, Kernel, Lookup, Origin};
use crate::config::Config;

/// Finds kernels, and keeps those that had to be compiled. Cloning shares it;
/// any number of threads may use it.
#[derive(Debug, Clone)]
pub struct KernelCache {
    inner: Arc<Config>,
}

impl KernelCache {
    /// Opens the cache. This never fails: what is wrong with a place or file
    /// is a warning, and a miss of the lookups that need it.
    #[must_use]
    pub fn open(config: Config) -> Self {
        Self { inner: Arc::new(config) }
    }

    /// How the cache was opened.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner
    }

    /// The kernel of a key from the first layer that has a whole one.
    #[must_use]
    pub fn get(&self, _key: &KernelKey) -> Lookup {
        Lookup { found: None, misses: Vec::new() }
    }

    /// The kernel of a key, compiled and stored where no layer has it.
    ///
    /// # Errors
    /// What `compile` fails with, and nothing else.
    pub fn get_or_compile<E>(
        &self,
        key: &KernelKey,
        compile: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Kernel, E> {
        let misses = self.get(key).misses;
        let code_object = CodeObject::from(compile()?);
        Ok(Kernel { code_object, origin: Origin::Compiled, not_stored: None, misses })
    }
}
