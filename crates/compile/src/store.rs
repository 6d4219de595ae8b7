//! The object store: one file per job digest, each with what it takes to
//! trust it again.

mod adopt;
mod entry;
mod refusal;
mod upkeep;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use rayon::prelude::*;
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, futimens};

use crate::error::CompileError;
use crate::file_digest::FileDigests;
use crate::shadow;
use crate::work::write_atomic_by;

pub(crate) use entry::Entry;
pub use entry::{About, ObjectInfo};
use entry::{about, read_header, read_object};
use refusal::refusal_path;
pub use upkeep::{Damaged, Evicted, Limits, OldStore, StoreStats};

/// The directory of the store below a cache, a shard's output or a shared
/// cache. The number goes up with the layout of its files, and where what
/// earlier versions kept may be wrong.
pub const VERSION: &str = "v2";
/// Where files are written before they get their names.
const TEMP: &str = "tmp";
/// Held by every build that uses the store, and alone by whoever evicts.
const LOCK: &str = "lock";
/// How long a file that is being written may take before it is taken for a
/// killed build's: objects are written in milliseconds.
const MAX_TEMP_AGE: Duration = Duration::from_secs(24 * 3600);
/// How exactly the store knows when a file was used last: finer would write
/// to the disk with every object read.
const USE_GRAIN: Duration = Duration::from_secs(3600);

/// Code objects by job digest, in a directory that any number of builds may
/// share. Files are written whole and never changed; damage is found by
/// digest when the bytes are read. When a file was used last is its
/// modification time, to the hour.
#[derive(Debug)]
pub struct ObjectStore {
    dir: PathBuf,
    /// A store that is read and never written.
    below: Option<PathBuf>,
    /// Whether each known set of dependencies is as it was.
    fresh: Mutex<HashMap<Digest, bool>>,
    /// Shared by all builds.
    lock: Option<File>,
}

type DepSet = Vec<(PathBuf, Digest)>;

impl ObjectStore {
    /// The store below a cache directory, which is made if need be. While
    /// this value lives, nobody evicts from it.
    ///
    /// # Errors
    /// [`CompileError::Io`] where the directory can't be made or written.
    pub fn open(cache_dir: &Path) -> Result<Self, CompileError> {
        let mut store = Self::open_to_look(cache_dir);
        let temp = store.dir.join(TEMP);
        fs::create_dir_all(&temp).map_err(CompileError::io("create", &temp))?;
        let path = store.dir.join(LOCK);
        let lock = File::options().create(true).append(true).open(&path);
        let lock = lock.map_err(CompileError::io("write", &path))?;
        // Waits for whoever evicts. Where locks are not to be had, what goes
        // too early is compiled again.
        flock(&lock, FlockOperation::LockShared).ok();
        store.lock = Some(lock);
        sweep(&temp);
        Ok(store)
    }

    /// The store in a directory that can't be written, with another one above
    /// it that takes what is made.
    ///
    /// # Errors
    /// [`CompileError::Io`] where the one above can't be made.
    pub fn open_above(cache_dir: &Path, above: &Path) -> Result<Self, CompileError> {
        let mut store = Self::open(above)?;
        store.below = Some(cache_dir.join(VERSION));
        Ok(store)
    }

    /// The store as it is, which need not exist: nothing is made or swept.
    #[must_use]
    pub fn open_to_look(cache_dir: &Path) -> Self {
        let dir = cache_dir.join(VERSION);
        Self { dir, below: None, fresh: Mutex::default(), lock: None }
    }

    /// Forgets a job's object, and that it was refused.
    pub fn remove(&self, job: Digest) {
        fs::remove_file(self.dir.join(object_path(job))).ok();
        fs::remove_file(self.dir.join(refusal_path(job))).ok();
    }

    /// A file of the store, or of the one below it.
    fn open_file(&self, path: &Path) -> io::Result<File> {
        match (File::open(self.dir.join(path)), &self.below) {
            (Err(error), Some(below)) if error.kind() == io::ErrorKind::NotFound => {
                File::open(below.join(path))
            }
            (opened, _) => opened,
        }
    }

    /// Where what is made is put.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file of the store, which is used thereby.
    pub(crate) fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut file = self.open_file(path)?;
        note_use(&file);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether the store has the job's object and the files that the compiler
    /// read for it are unchanged. The bytes are not read.
    #[must_use]
    pub fn lookup(&self, job: Digest, digests: &FileDigests) -> Option<ObjectInfo> {
        let info = self.info(job)?;
        info.deps.is_none_or(|set| self.deps_are_fresh(set, digests)).then_some(info)
    }

    /// What the store has of a job, were it out of date.
    #[must_use]
    pub fn info(&self, job: Digest) -> Option<ObjectInfo> {
        let mut file = BufReader::new(self.open_file(&object_path(job)).ok()?);
        let (info, header) = read_header(&mut file).ok()?;
        let length = file.get_ref().metadata().ok()?.len();
        (Some(length) == info.length(header)).then_some(info)
    }

    /// What a stored object was made for; `None` where that can't be told.
    #[must_use]
    pub fn about(&self, job: Digest) -> Option<About> {
        about(&mut BufReader::new(self.open_file(&object_path(job)).ok()?))
    }

    /// The system's files that went into a stored object, with what they
    /// held then, and those that would have, had they been there.
    #[must_use]
    pub fn system_files(&self, info: &ObjectInfo) -> Vec<(PathBuf, Digest)> {
        info.deps.and_then(|set| self.deps(set)).unwrap_or_default()
    }

    /// The job's object.
    ///
    /// # Errors
    /// [`CompileError::CorruptObject`] where the bytes are not those that
    /// were stored, or are gone; the entry is removed then, so that the next
    /// build makes it anew. [`CompileError::Io`] where it can't be read.
    pub fn read(&self, job: Digest) -> Result<Vec<u8>, CompileError> {
        self.read_whole(job).map(|(_, bytes)| bytes)
    }

    fn read_whole(&self, job: Digest) -> Result<(ObjectInfo, Vec<u8>), CompileError> {
        let path = object_path(job);
        let file = match self.open_file(&path) {
            // Evicted or cleaned up since it was looked up.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CompileError::CorruptObject(job));
            }
            opened => opened.map_err(CompileError::io("read", self.dir.join(&path)))?,
        };
        note_use(&file);
        match read_object(file).map_err(CompileError::io("read", self.dir.join(&path)))? {
            Some(whole) => Ok(whole),
            None => {
                self.drop_one(job, &path)?;
                Err(CompileError::CorruptObject(job))
            }
        }
    }

    /// The job's object, where it is the one that somebody knows by its
    /// SHA-256.
    ///
    /// # Errors
    /// As [`ObjectStore::read`]; [`CompileError::CorruptObject`] also where it
    /// is another one, which stays.
    pub fn read_known(&self, job: Digest, sha256: Digest) -> Result<Vec<u8>, CompileError> {
        let (info, bytes) = self.read_whole(job)?;
        if info.sha256 == sha256 { Ok(bytes) } else { Err(CompileError::CorruptObject(job)) }
    }

    /// Reads the jobs' objects, in parallel, so that those that are damaged
    /// are dropped.
    pub fn drop_damaged(&self, jobs: &[Digest]) {
        jobs.par_iter().for_each(|&job| {
            self.read(job).ok();
        });
    }

    /// Removes a damaged object; what can't be removed, because it lies in a
    /// store that is only read, is hidden by what is made in its place.
    fn drop_one(&self, job: Digest, path: &Path) -> Result<(), CompileError> {
        tracing::warn!(%job, "dropping a damaged object");
        match fs::remove_file(self.dir.join(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.below.is_some() => {
                // Too short to be looked up, so it is compiled again.
                self.write(path, &[b"damaged below\n"])
            }
            removed => match removed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other.map_err(CompileError::io("remove", self.dir.join(path))),
            },
        }
    }

    /// Stores the job's object, with the files that the compiler read for it
    /// besides source and toolchain.
    ///
    /// # Errors
    /// [`CompileError::Io`] where it can't be written; nothing half-written
    /// stays.
    pub fn insert(
        &self,
        job: Digest,
        bytes: &[u8],
        about: &About,
        deps: DepSet,
    ) -> Result<ObjectInfo, CompileError> {
        let deps = self.insert_deps(deps)?;
        let (info, header, about) = ObjectInfo::of(bytes, about, deps);
        self.write(&object_path(job), &[&header, bytes, &about])?;
        Ok(info)
    }

    /// Stores a set of files, if there are any.
    fn insert_deps(&self, mut deps: DepSet) -> Result<Option<Digest>, CompileError> {
        deps.sort();
        deps.dedup();
        if deps.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_vec(&deps).expect("plain data");
        let set = Hasher::new("gfxpack deps 1").field(&text).finish();
        let mut fresh = self.fresh.lock().expect("no panic inside");
        // Just digested, so fresh; on disk once per build at most, but anew
        // where what lies there was found to be gone or damaged.
        if fresh.insert(set, true) != Some(true) {
            self.write(&deps_path(set), &[&text])?;
        }
        Ok(Some(set))
    }

    pub(crate) fn write(&self, path: &Path, parts: &[&[u8]]) -> Result<(), CompileError> {
        let path = self.dir.join(path);
        write_atomic_by(&path, &self.dir.join(TEMP), parts).map_err(CompileError::io("write", path))
    }

    fn deps(&self, set: Digest) -> Option<DepSet> {
        let text = self.read_file(&deps_path(set)).ok()?;
        let whole = Hasher::new("gfxpack deps 1").field(&text).finish() == set;
        whole.then(|| serde_json::from_slice(&text).ok()).flatten()
    }

    fn deps_are_fresh(&self, set: Digest, digests: &FileDigests) -> bool {
        // Held while files are hashed: else every worker would hash them.
        let mut known = self.fresh.lock().expect("no panic inside");
        *known.entry(set).or_insert_with(|| self.deps_hold(set, digests))
    }

    fn deps_hold(&self, set: Digest, digests: &FileDigests) -> bool {
        let holds = |(path, digest): &(PathBuf, Digest)| shadow::holds(path, *digest, digests);
        self.deps(set).is_some_and(|deps| deps.iter().all(holds))
    }
}

impl ObjectStore {
    /// Where a job's object is, below the store's directory.
    pub(crate) fn entry_name(job: Digest) -> String {
        object_path(job).to_str().expect("hexadecimal").to_owned()
    }

    /// Whether the set of the system's files that went into an object is
    /// here, undamaged.
    pub(crate) fn has_deps(&self, info: &ObjectInfo) -> bool {
        info.deps.is_none_or(|set| self.deps(set).is_some())
    }

    /// That set was written anew: what was known of it holds no more.
    pub(crate) fn forget_deps(&self, info: &ObjectInfo) {
        if let Some(set) = info.deps {
            self.fresh.lock().expect("no panic inside").remove(&set);
        }
    }

    /// Whether a text is the set of files that its name says.
    pub(crate) fn is_deps(name: &str, text: &[u8]) -> bool {
        let set = Hasher::new("gfxpack deps 1").field(text).finish();
        Path::new(name) == deps_path(set)
    }
}

/// Below the store's directory.
fn object_path(job: Digest) -> PathBuf {
    let name = job.to_string();
    Path::new("objects").join(&name[..2]).join(name)
}

fn deps_path(set: Digest) -> PathBuf {
    Path::new("deps").join(format!("{set}.json"))
}

/// Notes that a file of a cache was used, if it is there, for whoever evicts.
pub fn touch(path: &Path) -> bool {
    File::open(path).map(|file| note_use(&file)).is_ok()
}

/// Notes that a file was used. Access times would say so by themselves, were
/// they not switched off on most machines.
fn note_use(file: &File) {
    let modified = file.metadata().and_then(|meta| meta.modified()).ok();
    if modified.and_then(|modified| modified.elapsed().ok()).is_some_and(|age| age > USE_GRAIN) {
        let time = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
        let times =
            Timestamps { last_access: time(UTIME_OMIT), last_modification: time(UTIME_NOW) };
        // Fails in a store of another user's, who evicts by his own uses.
        futimens(file, &times).ok();
    }
}

/// Removes what killed builds left half-written.
fn sweep(temp: &Path) {
    for entry in fs::read_dir(temp).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > MAX_TEMP_AGE) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_model::KernelKey;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        store: ObjectStore,
        digests: FileDigests,
        job: Digest,
    }

    fn about_it() -> About {
        let key = KernelKey::for_source("a.cl", " -DA", "gfx906");
        let arguments = ["-DA", "a.cl"].into_iter().collect();
        About { key, target_id: "gfx906".parse().unwrap(), arguments }
    }

    fn fixture() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let store = ObjectStore::open(dir.path()).unwrap();
        Fixture { store, dir, digests: FileDigests::in_memory(), job: Digest::of(b"job") }
    }

    #[test]
    fn what_is_stored_comes_back() {
        let f = fixture();
        assert_eq!(f.store.lookup(f.job, &f.digests), None);
        let info = f.store.insert(f.job, b"\x7fELF\nx", &about_it(), Vec::new()).unwrap();
        assert_eq!(f.store.lookup(f.job, &f.digests), Some(info));
        assert_eq!(f.store.read(f.job).unwrap(), b"\x7fELF\nx");
        assert_eq!(f.store.about(f.job), Some(about_it()));
    }

    #[test]
    fn what_is_gone_since_it_was_looked_up_is_made_again() {
        let f = fixture();
        f.store.insert(f.job, b"x", &about_it(), Vec::new()).unwrap();
        f.store.remove(f.job);
        assert!(matches!(f.store.read(f.job), Err(CompileError::CorruptObject(_))));
    }

    #[test]
    fn a_store_that_is_only_read_serves_and_is_never_touched() {
        let f = fixture();
        f.store.insert(f.job, b"below", &about_it(), Vec::new()).unwrap();
        let path = f.store.dir.join(object_path(f.job));
        let above = tempfile::tempdir().unwrap();
        let store = ObjectStore::open_above(f.dir.path(), above.path()).unwrap();
        assert!(store.lookup(f.job, &f.digests).is_some());
        assert_eq!(store.read(f.job).unwrap(), b"below");
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(5).position(|five| five == b"below").unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(store.read(f.job), Err(CompileError::CorruptObject(_))));
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(store.lookup(f.job, &f.digests), None, "it is compiled again");
        store.insert(f.job, b"above", &about_it(), Vec::new()).unwrap();
        assert_eq!(store.read(f.job).unwrap(), b"above");
    }

    #[test]
    fn every_damage_is_found_and_dropped() {
        let whole = {
            let f = fixture();
            f.store.insert(f.job, b"some object", &about_it(), Vec::new()).unwrap();
            fs::read(f.store.dir.join(object_path(f.job))).unwrap()
        };
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|at| whole[..at].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x04;
            bytes
        }));
        let f = fixture();
        f.store.insert(f.job, b"x", &about_it(), Vec::new()).unwrap();
        for bytes in damaged {
            fs::write(f.store.dir.join(object_path(f.job)), &bytes).unwrap();
            match f.store.read(f.job) {
                // Only damage that leaves the meaning alone may pass.
                Ok(read) => assert_eq!(read, b"some object"),
                Err(CompileError::CorruptObject(_)) => {
                    assert!(!f.store.dir.join(object_path(f.job)).exists());
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_changed_header_of_the_system_makes_it_a_miss() {
        let f = fixture();
        let header = f.dir.path().join("limits");
        fs::write(&header, "1").unwrap();
        let deps = vec![(header.clone(), Digest::of(b"1"))];
        f.store.insert(f.job, b"object", &about_it(), deps).unwrap();
        let reopened = || ObjectStore::open(f.dir.path()).unwrap();
        assert!(reopened().lookup(f.job, &FileDigests::in_memory()).is_some());
        fs::write(&header, "2").unwrap();
        assert!(reopened().lookup(f.job, &FileDigests::in_memory()).is_none());
    }
}
