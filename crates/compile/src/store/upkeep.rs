//! Maintenance of the store: statistics, eviction, and the search for damaged files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gfxpack_model::{Error, KernelKey};

use gfxpack_process::interrupted;
use rayon::prelude::*;
use rustix::fs::{FlockOperation, flock};

use super::entry::{Entry, read_entry};
use super::object_store::ObjectStore;
use super::{EVICTABLE_DIRS, KEY_DIRS, LOCK, TEMP, is_gone, sweep};

/// Directories beside the store whose files may be evicted too: probe answers, and records of
/// written files.
const BESIDE: [&str; 2] = ["answers", "outputs"];

/// Statistics of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreStats {
    /// Code objects.
    pub objects: u64,
    /// Bytes of their files.
    pub object_bytes: u64,
    /// Kept refusals.
    pub refusals: u64,
    /// Other files, which describe how objects were made.
    pub others: u64,
    /// Bytes of the other files and of kept refusals.
    pub other_bytes: u64,
    /// The time since the least recently used file was used.
    pub oldest: Option<Duration>,
}

impl StoreStats {
    /// All bytes, which [`Limits::size`] bounds.
    pub fn bytes(&self) -> u64 {
        self.object_bytes + self.other_bytes
    }
}

/// Limits for eviction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// The most bytes of all files.
    pub size: Option<u64>,
    /// The longest time since a file was used.
    pub age: Option<Duration>,
    /// Only report what would be evicted.
    pub dry_run: bool,
}

/// The result of an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evicted {
    /// Evicted files.
    pub files: u64,
    /// Bytes of the evicted files.
    pub bytes: u64,
    /// Remaining files.
    pub files_left: u64,
    /// Bytes of the remaining files.
    pub bytes_left: u64,
}

/// An object whose bytes are not those that were stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The file.
    pub path: PathBuf,
    /// The key that it was made for, if known.
    pub key: Option<KernelKey>,
}

struct StoredFile {
    path: PathBuf,
    kind: &'static str,
    bytes: u64,
    used: SystemTime,
}

impl ObjectStore {
    /// Counts what the store holds.
    pub fn stats(&self) -> StoreStats {
        let mut stats = StoreStats::default();
        for entry in self.entries() {
            let (count, bytes) = match entry.kind {
                "objects" => (&mut stats.objects, &mut stats.object_bytes),
                "refusals" => (&mut stats.refusals, &mut stats.other_bytes),
                _ => (&mut stats.others, &mut stats.other_bytes),
            };
            *count += 1;
            *bytes += entry.bytes;
            let age = entry.used.elapsed().unwrap_or_default();
            stats.oldest = Some(stats.oldest.map_or(age, |oldest| oldest.max(age)));
        }
        stats
    }

    /// Removes the least recently used files until the limits hold. `None` if other builds use the
    /// store: the last of them evicts. Objects returned by this store may be removed too, so it
    /// should not be used afterwards.
    ///
    /// # Errors
    /// If the store can't be written.
    pub fn evict(&self, limits: &Limits) -> Result<Option<Evicted>, Error> {
        let path = self.dir.join(LOCK);
        if !path.exists() {
            return Ok(Some(Evicted::default()));
        }
        let lock = match &self.lock {
            // The same file description, whose lock is converted.
            Some(lock) => lock.try_clone(),
            None => File::options().append(true).open(&path),
        };
        let lock = lock.map_err(Error::io("write", &path))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            // The failed request released our shared lock, so that of several builds that end at
            // once, none keeps the others from evicting.
            return Ok(None);
        }
        sweep(&self.dir.join(TEMP));
        let mut entries = self.entries();
        entries.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        let mut left = Evicted {
            files_left: entries.len() as u64,
            bytes_left: entries.iter().map(|entry| entry.bytes).sum(),
            ..Evicted::default()
        };
        for entry in &entries {
            let old =
                limits.age.is_some_and(|limit| entry.used.elapsed().is_ok_and(|age| age > limit));
            let much = limits.size.is_some_and(|limit| left.bytes_left > limit);
            if !old && !much {
                break;
            }
            if !limits.dry_run {
                remove(&entry.path)?;
            }
            left.files += 1;
            left.bytes += entry.bytes;
            left.files_left -= 1;
            left.bytes_left -= entry.bytes;
        }
        // The process may go on using the store.
        flock(&lock, FlockOperation::LockShared).ok();
        Ok(Some(left))
    }

    /// Reads and hashes every object and every kept refusal, and removes damaged ones, in parallel.
    /// Builds may run meanwhile. If `go_on` returns `false`, the search ends. Returns the number of
    /// objects.
    ///
    /// # Errors
    /// If one can't be read or removed, or `go_on` ended the search.
    pub fn verify(&self, go_on: &(dyn Fn() -> bool + Sync)) -> Result<(u64, Vec<Damaged>), Error> {
        let files: Vec<StoredFile> =
            self.entries().into_iter().filter(|entry| KEY_DIRS.contains(&entry.kind)).collect();
        let check = |entry: &StoredFile| -> Result<Option<Damaged>, Error> {
            if !go_on() {
                return Err(interrupted());
            }
            let bytes = match File::open(&entry.path).and_then(read_entry) {
                Err(error) if is_gone(&error) => return Ok(None),
                read => read.map_err(Error::io("read", &entry.path))?,
            };
            let name = entry.path.file_name().and_then(|name| name.to_str());
            let job = name.and_then(|name| name.parse().ok());
            if job.is_some_and(|job| Entry::parse(&bytes, job).is_some()) {
                return Ok(None);
            }
            let key = Entry::split(&bytes).map(|entry| entry.about.key);
            remove(&entry.path)?;
            Ok(Some(Damaged { path: entry.path.clone(), key }))
        };
        let found: Result<Vec<_>, _> = files.par_iter().map(check).collect();
        let mut damaged: Vec<Damaged> = found?.into_iter().flatten().collect();
        damaged.sort_by(|a, b| a.path.cmp(&b.path));
        let objects = files.iter().filter(|entry| entry.kind == "objects").count();
        Ok((objects as u64, damaged))
    }

    /// Every file that may be evicted.
    fn entries(&self) -> Vec<StoredFile> {
        let beside = self.dir.parent().map(|dir| BESIDE.map(|kind| (kind, dir.join(kind))));
        EVICTABLE_DIRS
            .into_iter()
            .map(|kind| (kind, self.dir.join(kind)))
            .chain(beside.into_iter().flatten())
            .flat_map(|(kind, dir)| files(&dir).map(move |file| (kind, file)))
            .filter_map(|(kind, path)| {
                let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
                Some(StoredFile { path, kind, bytes: meta.len(), used: meta.modified().ok()? })
            })
            .collect()
    }
}

/// Removes a file; no error if it is already gone.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if is_gone(&error) => Ok(()),
        removed => removed.map_err(Error::io("remove", path)),
    }
}

fn files(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    walkdir::WalkDir::new(dir)
        .min_depth(1)
        .into_iter()
        .flatten()
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;

    use gfxpack_model::Digest;

    use super::super::test_support::{about_it, is_corrupt};
    use super::super::{object_path, refusal_path};
    use super::*;
    use crate::job::{Failure, FailureKind};

    const HOUR: Duration = Duration::from_secs(3600);

    /// Objects that were last used so many hours ago.
    fn store(dir: &Path, hours: &[u32]) -> Vec<Digest> {
        let store = ObjectStore::open(dir).unwrap();
        let object = |&hours: &u32| {
            let job = Digest::of(&hours.to_le_bytes());
            store.insert(job, &[7; 1000], &about_it()).unwrap();
            age(&store, job, hours);
            job
        };
        hours.iter().map(object).collect()
    }

    fn age(store: &ObjectStore, job: Digest, hours: u32) {
        let file = File::options().append(true).open(store.dir.join(object_path(job))).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_times(FileTimes::new().set_modified(now - HOUR * hours)).unwrap();
    }

    fn left(dir: &Path, jobs: &[Digest]) -> Vec<bool> {
        let store = ObjectStore::open_to_look(dir);
        jobs.iter().map(|&job| store.info(job).is_some()).collect()
    }

    #[test]
    fn the_least_recently_used_files_are_evicted_first() {
        let dir = tempfile::tempdir().unwrap();
        let jobs = store(dir.path(), &[2, 9, 5, 7, 8]);
        let opened = ObjectStore::open(dir.path()).unwrap();
        // Reading an object marks it as used, and so does a lookup.
        opened.read(jobs[1]).unwrap();
        assert!(opened.lookup(jobs[4]).is_some());
        let total = opened.stats().bytes();
        let limits = |size| Limits { size: Some(size), ..Limits::default() };
        let dry = Limits { dry_run: true, ..limits(0) };
        assert_eq!(opened.evict(&dry).unwrap().unwrap().files, 5);
        assert_eq!(opened.evict(&limits(total)).unwrap().unwrap().files, 0);
        let evicted = opened.evict(&limits(total / 5 * 3)).unwrap().unwrap();
        assert_eq!((evicted.files, evicted.files_left), (2, 3));
        assert_eq!(left(dir.path(), &jobs), [true, true, false, false, true]);
        let old = Limits { age: Some(HOUR), ..Limits::default() };
        opened.evict(&old).unwrap();
        assert_eq!(left(dir.path(), &jobs), [false, true, false, false, true]);
    }

    #[test]
    fn a_file_removed_or_replaced_by_another_process_counts_as_gone() {
        let dir = tempfile::tempdir().unwrap();
        remove(&dir.path().join("gone")).unwrap();
        assert!(is_gone(&rustix::io::Errno::STALE.into()) && remove(dir.path()).is_err());
    }

    #[test]
    fn files_beside_the_store_are_evicted_by_last_use_too() {
        let dir = tempfile::tempdir().unwrap();
        let jobs = store(dir.path(), &[3]);
        for kind in BESIDE {
            let file = dir.path().join(kind).join("a");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, [7; 100]).unwrap();
            let file = File::options().append(true).open(file).unwrap();
            file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH)).unwrap();
        }
        assert!(gfxpack_process::touch(&dir.path().join("answers/a")));
        fs::create_dir_all(dir.path().join("trials")).unwrap();
        fs::write(dir.path().join("trials/a"), "").unwrap();
        let opened = ObjectStore::open(dir.path()).unwrap();
        let old = Limits { age: Some(HOUR * 24), ..Limits::default() };
        assert_eq!(opened.evict(&old).unwrap().unwrap().files, 1);
        let there = |file: &str| dir.path().join(file).exists();
        assert!(there("answers/a") && !there("outputs/a") && there("trials/a"));
        assert_eq!(left(dir.path(), &jobs), [true]);
    }

    #[test]
    fn nothing_is_evicted_while_another_build_runs() {
        let dir = tempfile::tempdir().unwrap();
        let jobs = store(dir.path(), &[3]);
        let everything = Limits { size: Some(0), ..Limits::default() };
        let running = ObjectStore::open(dir.path()).unwrap();
        let looking = ObjectStore::open_to_look(dir.path());
        assert_eq!(looking.evict(&everything).unwrap(), None);
        assert_eq!(left(dir.path(), &jobs), [true]);
        drop(running);
        assert_eq!(looking.evict(&everything).unwrap().unwrap().files, 1);
        assert_eq!(left(dir.path(), &jobs), [false]);
    }

    #[test]
    fn kept_refusals_are_counted_verified_and_evicted() {
        let dir = tempfile::tempdir().unwrap();
        let jobs = store(dir.path(), &[1]);
        let opened = ObjectStore::open(dir.path()).unwrap();
        let failure = Failure::new(FailureKind::Refused(1), "k.cl:1:1: error: no\n".to_owned());
        let refusal = || opened.refusal(jobs[0]);
        let insert = || {
            opened.insert_refusal(jobs[0], &failure, &about_it()).unwrap();
            assert!(refusal().is_some());
        };
        insert();
        let stats = opened.stats();
        assert_eq!((stats.objects, stats.refusals, stats.others), (1, 1, 0));
        assert_eq!(opened.verify(&|| true).unwrap(), (1, Vec::new()));
        let path = opened.dir.join(refusal_path(jobs[0]));
        fs::write(&path, "damaged").unwrap();
        assert_eq!(refusal(), None);
        let (objects, damaged) = opened.verify(&|| true).unwrap();
        assert_eq!((objects, damaged.len(), path.exists()), (1, 1, false));
        insert();
        let everything = Limits { size: Some(0), ..Limits::default() };
        assert_eq!(opened.evict(&everything).unwrap().unwrap().files, 2);
        assert!(!path.exists());
    }

    #[test]
    fn every_damaged_object_is_reported_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let jobs = store(dir.path(), &[1, 2, 3, 4]);
        let opened = ObjectStore::open_to_look(dir.path());
        assert_eq!(opened.verify(&|| true).unwrap(), (4, Vec::new()));
        let damage = |job: usize, change: &dyn Fn(&mut Vec<u8>)| {
            let path = opened.dir.join(object_path(jobs[job]));
            let mut bytes = fs::read(&path).unwrap();
            change(&mut bytes);
            fs::write(path, bytes).unwrap();
        };
        damage(0, &|bytes| bytes[500] ^= 1);
        damage(2, &|bytes| bytes.truncate(500));
        let (objects, damaged) = opened.verify(&|| true).unwrap();
        assert_eq!((objects, damaged.len()), (4, 2));
        assert!(damaged.iter().any(|one| one.key == Some(about_it().key)), "{damaged:?}");
        assert_eq!(left(dir.path(), &jobs), [false, true, false, true]);
        assert!(opened.verify(&|| false).unwrap_err().is_interrupted());
        // Files larger than any memory.
        let huge = |path: &Path| File::create(path).unwrap().set_len(1 << 42).unwrap();
        let path = opened.dir.join(object_path(jobs[1]));
        huge(&path);
        assert_eq!(opened.about(jobs[1]), None);
        assert!(is_corrupt(&opened.read(jobs[1])));
        huge(&path);
        huge(&opened.dir.join("objects/core"));
        assert_eq!(opened.verify(&|| true).unwrap().1.len(), 2);
    }
}
