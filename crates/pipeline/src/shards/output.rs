//! The output directory of shards: objects in the cache's own layout, a note for
//! each job that failed, and manifests.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_compile::{ObjectInfo, ObjectStore};
use gfxpack_model::{Digest, KernelKey};
use gfxpack_plan::shard::{JobState, ShardObject};
use serde::{Deserialize, Serialize};

use crate::destination::replace;
use crate::error::{self, Result};

/// The directory with notes of failed jobs, one file each.
const FAILED: &str = "failed";

/// The output of any number of shards of a plan.
pub(crate) struct ShardOutput {
    dir: PathBuf,
    pub(crate) store: ObjectStore,
}

/// Why a job has no object, with the compiler's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobNote {
    pub(super) state: JobState,
    pub(super) key: KernelKey,
    pub(super) reason: String,
    /// The compiler's output.
    pub(super) output: String,
}

impl ShardOutput {
    /// Opens the directory, and creates it if necessary.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).map_err(error::io("create", dir))?;
        let dir = fs::canonicalize(dir).map_err(error::io("find", dir))?;
        Ok(Self { store: ObjectStore::open(&dir)?, dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The object with a key, if it is there and undamaged.
    pub(crate) fn object(&self, key: Digest) -> Option<ShardObject> {
        self.store.read(key).ok()?;
        let ObjectInfo { key, sha256, size, .. } = self.store.info(key)?;
        Some(ShardObject { key, sha256, size })
    }

    fn file(&self, job: Digest) -> PathBuf {
        self.dir.join(FAILED).join(format!("{job}.json"))
    }

    /// The note of a job that failed and is not to be tried again.
    pub(crate) fn note(&self, job: Digest) -> Option<JobNote> {
        let note: JobNote = serde_json::from_slice(&fs::read(self.file(job)).ok()?).ok()?;
        (!note.state.is_made() && !note.state.is_to_retry()).then_some(note)
    }

    /// Records why a job has no object.
    pub(crate) fn write_note(&self, job: Digest, note: &JobNote) -> Result<()> {
        let path = self.file(job);
        let mut text = serde_json::to_vec_pretty(note).map_err(error::json)?;
        text.push(b'\n');
        replace(&path, &text)
    }

    /// Removes the note of a job.
    pub(crate) fn forget(&self, job: Digest) {
        fs::remove_file(self.file(job)).ok();
    }
}
