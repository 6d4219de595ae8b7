//! Objects shared between machines. The shared cache is asked for objects that the store lacks, its
//! entries are checked like foreign bytes, and it gets the objects that this build makes. If it
//! fails, the build goes on without it.

use std::fmt;
use std::sync::Mutex;

use std::collections::HashMap;

use gfxpack_model::{Digest, JobId};
use gfxpack_plan::plan::{Job, Plan};
use gfxpack_process::Cancel;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::declare::Declared;
use crate::job;
use crate::store::{Entry, ObjectInfo, ObjectStore};

/// The number of parallel reads and writes.
const AT_ONCE: usize = 32;
/// The number of parallel uploads during a build.
const UPLOADS: usize = 4;
/// A larger entry is no object.
const MAX_ENTRY: u64 = 1 << 30;

/// A store of bytes by name that others use too.
pub trait SharedStore: fmt::Debug + Send + Sync {
    /// The name for messages.
    fn name(&self) -> String;

    /// The bytes with that name, if there are any. If there are more than `most`, only some of the
    /// first.
    ///
    /// # Errors
    /// A message, if the bytes could not be read.
    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String>;

    /// Whether there are bytes with that name.
    ///
    /// # Errors
    /// As above.
    fn has(&self, name: &str) -> Result<bool, String>;

    /// Stores bytes under a name. Readers see all of them or none.
    ///
    /// # Errors
    /// As above.
    fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), String>;
}

/// The objects to upload to a shared cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Upload {
    /// Nothing.
    Never,
    /// The objects that this build made.
    #[default]
    Made,
    /// These, and stored objects that the shared cache lacks.
    All,
}

/// A shared cache that is in use.
#[derive(Debug)]
pub struct SharedCache {
    shared: Box<dyn SharedStore>,
    upload: Upload,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    off: bool,
    /// Whether a damaged entry was found.
    damaged: bool,
    /// Not reported yet.
    warnings: Vec<String>,
}

impl SharedCache {
    /// A shared cache, not asked for anything yet.
    pub fn new(shared: Box<dyn SharedStore>, upload: Upload) -> Self {
        Self { shared, upload, state: Mutex::default() }
    }

    /// The warnings for the user, each returned once.
    pub(crate) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().warnings)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panic inside")
    }

    fn is_off(&self) -> bool {
        self.lock().off
    }

    fn give_up(&self, reason: &str) {
        let mut state = self.lock();
        if !state.off {
            state.off = true;
            let name = self.shared.name();
            state.warnings.push(format!(
                "failed to use the shared cache {name}: {reason}; this build continues without it"
            ));
        }
    }

    /// Warns of the first damaged entry only.
    fn found_damaged(&self, name: &str) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.damaged, true) {
            let shared = self.shared.name();
            state.warnings.push(format!(
                "ignored `{name}` of the shared cache {shared}: its content is not that of its \
                 name; further ones are not reported"
            ));
        }
        tracing::debug!(name, "dropped what a shared cache gave");
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        if self.is_off() {
            return None;
        }
        match self.shared.read(name, MAX_ENTRY) {
            Ok(bytes) => bytes,
            Err(reason) => {
                self.give_up(&reason);
                None
            }
        }
    }

    /// Copies the cache's objects for these jobs into the store, and returns the jobs with their
    /// objects.
    pub(crate) fn fetch(
        &self,
        plan: &Plan,
        jobs: &[JobId],
        declared: &HashMap<JobId, Declared>,
        store: &ObjectStore,
        cancel: &Cancel,
    ) -> Vec<(JobId, ObjectInfo)> {
        let fetch =
            |job: JobId| Some((job, self.fetch_one(&plan[job], declared[&job].key, store)?));
        pool(jobs.len()).install(|| self.each(jobs, cancel).filter_map(fetch).collect())
    }

    /// These jobs, many at once, as long as the cache works.
    fn each(&self, jobs: &[JobId], cancel: &Cancel) -> impl ParallelIterator<Item = JobId> {
        let goes_on = move |_: &JobId| !cancel.is_cancelled() && !self.is_off();
        jobs.par_iter().with_max_len(1).copied().filter(goes_on)
    }

    fn fetch_one(&self, job: &Job, key: Digest, store: &ObjectStore) -> Option<ObjectInfo> {
        let name = ObjectStore::entry_name(key);
        let bytes = self.read(&name)?;
        let is_fit = |entry: &Entry<'_>| job::checked(job, entry.object.to_vec()).is_ok();
        if Entry::parse(&bytes, key).filter(is_fit).is_none() {
            self.found_damaged(&name);
            return None;
        }
        store.write(name.as_ref(), &[&bytes]).ok()?;
        store.lookup(key)
    }

    /// Runs `build` with a function that takes keys whose objects are stored and uploads these at
    /// the same time. A cancelled build does not wait for the remaining uploads.
    pub(crate) fn uploading(
        shared: Option<&Self>,
        store: &ObjectStore,
        cancel: &Cancel,
        build: impl FnOnce(&dyn Fn(Digest)),
    ) {
        let Some(shared) = shared.filter(|shared| shared.upload != Upload::Never) else {
            return build(&|_| {});
        };
        pool(UPLOADS).in_place_scope(|scope| {
            build(&|key| {
                scope.spawn(move |_| {
                    if !cancel.is_cancelled() {
                        shared.upload_one(key, store);
                    }
                });
            });
        });
    }

    /// Uploads stored objects that the shared cache lacks, if it is to have all.
    pub(crate) fn top_up(
        &self,
        jobs: &[JobId],
        declared: &HashMap<JobId, Declared>,
        store: &ObjectStore,
        cancel: &Cancel,
    ) {
        if self.upload != Upload::All {
            return;
        }
        let top_up = |job: JobId| {
            let key = declared[&job].key;
            match self.shared.has(&ObjectStore::entry_name(key)) {
                Ok(true) => {}
                Ok(false) => self.upload_one(key, store),
                Err(reason) => self.give_up(&reason),
            }
        };
        pool(jobs.len()).install(|| self.each(jobs, cancel).for_each(top_up));
    }

    fn upload_one(&self, key: Digest, store: &ObjectStore) {
        if self.is_off() {
            return;
        }
        let name = ObjectStore::entry_name(key);
        let Ok(bytes) = store.read_file(name.as_ref()) else { return };
        // A damaged object does not concern others.
        if Entry::parse(&bytes, key).is_none() {
            return;
        }
        if let Err(reason) = self.shared.write(&name, bytes) {
            self.give_up(&reason);
        }
    }
}

/// Threads that wait for the network, not for a processor; enough for so many objects.
fn pool(objects: usize) -> ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(objects.clamp(1, AT_ONCE));
    pool.build().expect("threads can be started")
}
