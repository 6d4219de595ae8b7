//! The directory that shards are built into: objects in the cache's own
//! layout, a note for each job that failed, manifests.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_compile::{ObjectStore, ValidityCheck};
use gfxpack_model::{Digest, KernelKey};
use gfxpack_plan::shard::JobState;
use serde::{Deserialize, Serialize};

use crate::destination::replace;
use crate::error::{self, Result};

/// Notes of jobs that failed, one file each.
const FAILED: &str = "failed";

/// What any number of shards of a plan leave behind.
pub(crate) struct Outbox {
    dir: PathBuf,
    pub(crate) store: ObjectStore,
}

/// Why a job has no object, with the compiler's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// How it ended.
    pub state: JobState,
    /// Its kernel.
    pub key: KernelKey,
    /// Why it has no object.
    pub reason: String,
    /// The compiler's output.
    pub output: String,
}

impl Outbox {
    /// The directory, which is made if need be.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).map_err(error::io("create", dir))?;
        let dir = fs::canonicalize(dir).map_err(error::io("find", dir))?;
        Ok(Self { store: ObjectStore::open(&dir)?, dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether a job's object is there, whole, and made of headers that are
    /// as they were.
    pub(crate) fn has(&self, job: Digest, now: ValidityCheck<'_>) -> bool {
        self.store.lookup(job, now).is_some() && self.store.read(job).is_ok()
    }

    fn file(&self, job: Digest) -> PathBuf {
        self.dir.join(FAILED).join(format!("{job}.json"))
    }

    /// What is noted of a job that failed and is not to be retried.
    pub(crate) fn note(&self, job: Digest) -> Option<Note> {
        let note: Note = serde_json::from_slice(&fs::read(self.file(job)).ok()?).ok()?;
        (!note.state.is_made() && !note.state.is_to_retry()).then_some(note)
    }

    /// Notes why a job has no object.
    pub(crate) fn write_note(&self, job: Digest, note: &Note) -> Result<()> {
        let path = self.file(job);
        let mut text = serde_json::to_vec_pretty(note)?;
        text.push(b'\n');
        replace(&path, &text)
    }

    /// Forgets what was noted of a job.
    pub(crate) fn forget(&self, job: Digest) {
        fs::remove_file(self.file(job)).ok();
    }
}
