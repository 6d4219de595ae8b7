//! The object store itself. Kept refusals, failures that are the kernel's own fault, are files of the
//! same form as objects.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gfxpack_model::{Digest, Error};
use gfxpack_process::{create_dir_as_above, note_use, write_atomic_by};
use rayon::prelude::*;
use rustix::fs::{Access, FlockOperation, access, flock};
use serde::{Deserialize, Serialize};

use super::entry::{Entry, ObjectInfo, ObjectPurpose, read_entry, read_info};
use super::{
    EVICTABLE_DIRS, KEY_DIRS, LOCK, TEMP, VERSION, is_gone, object_path, refusal_path, sweep,
};
use crate::job::{Failure, FailureKind};

/// A stored object was found damaged and has been removed.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("failed to use stored object `{0}`: its bytes are not those that were stored")]
pub struct CorruptObject(pub Digest);

impl From<CorruptObject> for Error {
    fn from(corrupt: CorruptObject) -> Self {
        Self::internal(corrupt, "run again: it is compiled anew").caused_by(corrupt)
    }
}

/// This version of gfxpack; another one may judge differently.
const JUDGE: &str = env!("CARGO_PKG_VERSION");

/// The content of a refusal's file in place of an object.
#[derive(Serialize, Deserialize)]
struct KeptRefusal {
    /// The version of gfxpack that judged the failure.
    judge: String,
    reason: FailureKind,
    output: String,
}

/// Code objects by key, in a directory that any number of builds may share. Files are
/// written whole and never changed. Damage is found by digest when the bytes are read. The
/// modification time of a file is the hour in which it was last used.
#[derive(Debug)]
pub struct ObjectStore {
    /// The directory that new objects are written to.
    pub(crate) dir: PathBuf,
    /// The directory of a second store that is only read.
    pub(super) below: Option<PathBuf>,
    /// A shared lock, held by all builds.
    pub(super) lock: Option<File>,
}

impl ObjectStore {
    /// The store below a cache directory, which is created if necessary. While this value lives,
    /// nothing is evicted.
    ///
    /// # Errors
    /// If the directory can't be made or written.
    pub fn open(cache_dir: &Path) -> Result<Self, Error> {
        let mut store = Self::open_to_look(cache_dir);
        let temp = store.dir.join(TEMP);
        fs::create_dir_all(&temp).map_err(Error::io("create", &temp))?;
        for kind in EVICTABLE_DIRS.into_iter().chain([TEMP]) {
            let dir = store.dir.join(kind);
            create_dir_as_above(&dir).map_err(Error::io("create", &dir))?;
            // Other users may have created these directories.
            let below = KEY_DIRS.contains(&kind).then(|| fs::read_dir(&dir).ok()).flatten();
            let below = below.into_iter().flatten().flatten().map(|entry| entry.path());
            for dir in below.chain([dir]) {
                let denied = |error| Error::io("write", &dir)(io::Error::from(error));
                access(&dir, Access::WRITE_OK).map_err(denied)?;
            }
        }
        let path = store.dir.join(LOCK);
        // NFS refuses a shared lock on a file that is opened only for writing.
        let lock = File::options().create(true).read(true).append(true).open(&path);
        let lock = lock.map_err(Error::io("write", &path))?;
        // Waits while another process evicts. Without locks, an object that is evicted too early is
        // compiled again.
        flock(&lock, FlockOperation::LockShared).ok();
        store.lock = Some(lock);
        sweep(&temp);
        Ok(store)
    }

    /// The store in a read-only directory, with a second one for new objects.
    ///
    /// # Errors
    /// If the second one can't be created.
    pub fn open_above(cache_dir: &Path, above: &Path) -> Result<Self, Error> {
        let mut store = Self::open(above)?;
        store.below = Some(cache_dir.join(VERSION));
        Ok(store)
    }

    /// The store as it is, even if it does not exist: nothing is created or removed.
    pub fn open_to_look(cache_dir: &Path) -> Self {
        let dir = cache_dir.join(VERSION);
        Self { dir, below: None, lock: None }
    }

    /// Opens a file of this store, or of the read-only one.
    pub(super) fn open_file(&self, path: &Path) -> io::Result<File> {
        match (File::open(self.dir.join(path)), &self.below) {
            (Err(error), Some(below)) if is_gone(&error) => File::open(below.join(path)),
            (opened, _) => opened,
        }
    }

    /// Reads a file of the store, and marks it as used.
    pub(crate) fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut file = self.open_file(path)?;
        note_use(&file);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the file of an object or a refusal, and marks it as used. The result is empty if the
    /// file has not the length that its header states.
    pub(super) fn read_entry(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open_file(path)?;
        note_use(&file);
        read_entry(file)
    }

    /// Information about the object with this key. Marks it as used. Its bytes are not read.
    pub fn lookup(&self, key: Digest) -> Option<ObjectInfo> {
        let file = self.open_file(&object_path(key)).ok()?;
        let info = info_of(&file, key)?;
        note_use(&file);
        Some(info)
    }

    /// Information about the object with this key.
    pub fn info(&self, key: Digest) -> Option<ObjectInfo> {
        info_of(&self.open_file(&object_path(key)).ok()?, key)
    }

    /// The purpose of a stored object; `None` if not known.
    pub fn about(&self, key: Digest) -> Option<ObjectPurpose> {
        let file = self.open_file(&object_path(key)).ok()?;
        Some(Entry::split(&read_entry(file).ok()?)?.about)
    }

    /// The object with this key.
    ///
    /// # Errors
    /// [`CorruptObject`] if the bytes are not those that were stored, or are gone;
    /// the entry is then removed, so that the next build makes it anew. If
    /// it can't be read.
    pub fn read(&self, key: Digest) -> Result<Vec<u8>, Error> {
        let path = object_path(key);
        let bytes = match self.read_entry(&path) {
            // Evicted or removed since the lookup.
            Err(error) if is_gone(&error) => return Err(CorruptObject(key).into()),
            read => read.map_err(Error::io("read", self.dir.join(&path)))?,
        };
        let Some(Entry { object, .. }) = Entry::parse(&bytes, key) else {
            self.drop_one(key, &path)?;
            return Err(CorruptObject(key).into());
        };
        Ok(object.to_vec())
    }

    /// Reads these objects in parallel, to remove damaged ones.
    pub fn drop_damaged(&self, keys: &[Digest]) {
        keys.par_iter().for_each(|&key| drop(self.read(key)));
    }

    /// Removes a damaged object, if possible. In a read-only store, it is hidden by a new file
    /// above it.
    pub(super) fn drop_one(&self, key: Digest, path: &Path) -> Result<(), Error> {
        tracing::warn!(%key, "dropping a damaged object");
        if fs::remove_file(self.dir.join(path)).is_err() && self.below.is_some() {
            // This is too short for a lookup, so the object is compiled again.
            self.write(path, &[b"damaged below\n"])?;
        }
        Ok(())
    }

    /// Stores the object with this key.
    ///
    /// # Errors
    /// If it can't be written; nothing half-written stays.
    pub fn insert(
        &self,
        key: Digest,
        bytes: &[u8],
        about: &ObjectPurpose,
    ) -> Result<ObjectInfo, Error> {
        let (info, header, about) = ObjectInfo::for_object(key, bytes, about);
        self.write(&object_path(key), &[&header, bytes, &about])?;
        Ok(info)
    }

    /// Copies an object from another store. Its bytes are checked on the way; `None` if the other
    /// store does not have it, or has removed it because it was damaged.
    ///
    /// # Errors
    /// If it can't be read or written.
    pub fn adopt(&self, from: &Self, key: Digest) -> Result<Option<ObjectInfo>, Error> {
        self.adopt_file(from, key, &object_path(key))
    }

    /// Copies the file of an object or a refusal.
    pub(super) fn adopt_file(
        &self,
        from: &Self,
        key: Digest,
        path: &Path,
    ) -> Result<Option<ObjectInfo>, Error> {
        let raw = match from.read_entry(path) {
            Err(error) if is_gone(&error) => return Ok(None),
            raw => raw.map_err(Error::io("read", from.dir.join(path)))?,
        };
        let Some(Entry { info, .. }) = Entry::parse(&raw, key) else {
            from.drop_one(key, path)?;
            return Ok(None);
        };
        self.write(path, &[&raw])?;
        Ok(Some(info))
    }

    /// Stores a failure, which is the kernel's own fault.
    pub(crate) fn insert_refusal(
        &self,
        key: Digest,
        failure: &Failure,
        about: &ObjectPurpose,
    ) -> Result<(), Error> {
        let Failure { kind, output, .. } = failure.clone();
        let refusal = KeptRefusal { judge: JUDGE.to_owned(), reason: kind, output };
        let bytes = serde_json::to_vec(&refusal).expect("plain data");
        let (_, header, about) = ObjectInfo::for_object(key, &bytes, about);
        self.write(&refusal_path(key), &[&header, &bytes, &about])
    }

    /// The kept failure with this key, if this version of gfxpack judged it.
    pub fn refusal(&self, key: Digest) -> Option<Failure> {
        let bytes = self.read_entry(&refusal_path(key)).ok()?;
        let refusal = serde_json::from_slice(Entry::parse(&bytes, key)?.object).ok()?;
        let KeptRefusal { judge, reason: kind, output } = refusal;
        (judge == JUDGE).then(|| Failure::new(kind, output))
    }

    /// Copies a kept refusal from another store. Returns whether there is one.
    ///
    /// # Errors
    /// If it can't be read or written.
    pub fn adopt_refusal(&self, from: &Self, key: Digest) -> Result<bool, Error> {
        self.adopt_file(from, key, &refusal_path(key)).map(|info| info.is_some())
    }

    pub(crate) fn write(&self, path: &Path, parts: &[&[u8]]) -> Result<(), Error> {
        let path = self.dir.join(path);
        write_atomic_by(&path, &self.dir.join(TEMP), parts).map_err(Error::io("write", path))
    }

    /// The file of an object, below the store's directory.
    pub(crate) fn entry_name(key: Digest) -> String {
        object_path(key).to_str().expect("hexadecimal").to_owned()
    }
}

fn info_of(file: &File, key: Digest) -> Option<ObjectInfo> {
    read_info(file).ok()?.filter(|info| info.key == key)
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{about_it, fixture, is_corrupt};
    use super::*;

    #[test]
    fn an_object_removed_after_its_lookup_is_corrupt() {
        let f = fixture();
        f.store.insert(f.job, b"x", &about_it()).unwrap();
        fs::remove_file(f.store.dir.join(object_path(f.job))).unwrap();
        assert!(is_corrupt(&f.store.read(f.job)));
    }

    #[test]
    fn a_read_only_store_is_read_and_never_touched() {
        let f = fixture();
        f.store.insert(f.job, b"below", &about_it()).unwrap();
        let path = f.store.dir.join(object_path(f.job));
        let above = tempfile::tempdir().unwrap();
        let store = ObjectStore::open_above(f.dir.path(), above.path()).unwrap();
        assert!(store.lookup(f.job).is_some());
        assert_eq!(store.read(f.job).unwrap(), b"below");
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(5).position(|five| five == b"below").unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(is_corrupt(&store.read(f.job)));
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(store.lookup(f.job), None, "it is compiled again");
        store.insert(f.job, b"above", &about_it()).unwrap();
        assert_eq!(store.read(f.job).unwrap(), b"above");
    }

    #[test]
    fn every_damaged_object_is_found_and_removed() {
        let whole = {
            let f = fixture();
            f.store.insert(f.job, b"some object", &about_it()).unwrap();
            fs::read(f.store.dir.join(object_path(f.job))).unwrap()
        };
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|at| whole[..at].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x04;
            bytes
        }));
        let f = fixture();
        f.store.insert(f.job, b"x", &about_it()).unwrap();
        for bytes in damaged {
            fs::write(f.store.dir.join(object_path(f.job)), &bytes).unwrap();
            match f.store.read(f.job) {
                // Only damage that does not change the meaning may go unnoticed.
                Ok(read) => assert_eq!(read, b"some object"),
                corrupt => {
                    assert!(is_corrupt(&corrupt), "{corrupt:?}");
                    assert!(!f.store.dir.join(object_path(f.job)).exists());
                }
            }
        }
    }

    /// Root may remove any file, so this shows nothing if root runs it.
    #[test]
    fn a_damaged_object_that_cannot_be_removed_is_still_reported_as_damaged() {
        let f = fixture();
        f.store.insert(f.job, b"x", &about_it()).unwrap();
        let path = f.store.dir.join(object_path(f.job));
        fs::write(&path, "damaged").unwrap();
        let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path.parent().unwrap(), mode(0o555)).unwrap();
        let looking = ObjectStore::open_to_look(f.dir.path());
        assert!(is_corrupt(&looking.read(f.job)));
        let opened = ObjectStore::open(f.dir.path());
        assert!(opened.is_err() || rustix::process::geteuid().is_root(), "{opened:?}");
        fs::set_permissions(path.parent().unwrap(), mode(0o755)).unwrap();
    }

    #[test]
    fn another_jobs_file_is_a_miss() {
        let (f, other) = (fixture(), Digest::of(b"another job"));
        f.store.insert(other, b"another object", &about_it()).unwrap();
        let path = |job| f.store.dir.join(object_path(job));
        fs::create_dir_all(path(f.job).parent().unwrap()).unwrap();
        fs::copy(path(other), path(f.job)).unwrap();
        assert_eq!(f.store.lookup(f.job), None);
        assert!(is_corrupt(&f.store.read(f.job)));
        assert!(!path(f.job).exists() && f.store.lookup(other).is_some());
    }

    #[test]
    fn an_object_is_adopted_whole_or_not_at_all() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [from, to] = [&dirs[0], &dirs[1]].map(|dir| ObjectStore::open(dir.path()).unwrap());
        let (key, other) = (Digest::of(b"key"), Digest::of(b"other"));
        let info = from.insert(key, b"object", &about_it()).unwrap();
        assert_eq!(to.adopt(&from, other).unwrap(), None);
        assert_eq!(to.adopt(&from, key).unwrap(), Some(info.clone()));
        assert_eq!(to.lookup(key), Some(info));
        assert_eq!(to.read(key).unwrap(), b"object");
        assert_eq!(to.about(key), Some(about_it()));

        from.insert(other, b"object", &about_it()).unwrap();
        let file = dirs[0].path().join(VERSION).join(object_path(other));
        let text = String::from_utf8(fs::read(&file).unwrap()).unwrap();
        fs::write(&file, text.replace("\nobject", "\nobiect")).unwrap();
        assert_eq!(to.adopt(&from, other).unwrap(), None, "damaged");
        assert!(to.info(other).is_none() && !file.exists());
    }

    #[test]
    fn another_version_of_gfxpack_ignores_a_refusal() {
        let f = fixture();
        let failure = Failure::new(FailureKind::Refused(1), "a.cl:1:1: error: no".to_owned());
        f.store.insert_refusal(f.job, &failure, &about_it()).unwrap();
        assert_eq!(f.store.refusal(f.job), Some(failure.clone()));
        let Failure { kind: reason, output, .. } = failure;
        let refusal = KeptRefusal { judge: "0.0.0".to_owned(), reason, output };
        let bytes = serde_json::to_vec(&refusal).unwrap();
        let (_, header, about) = ObjectInfo::for_object(f.job, &bytes, &about_it());
        f.store.write(&refusal_path(f.job), &[&header, &bytes, &about]).unwrap();
        assert_eq!(f.store.refusal(f.job), None);
    }
}
