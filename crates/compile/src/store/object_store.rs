//! The object store itself.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_launch::{Command, Drivers};
use gfxpack_model::{Digest, SourceId};
use gfxpack_process::watch::{FileSystemCache, PathStates, StoredPathStates};
use gfxpack_process::{FileError, create_dir_as_above, note_use, write_atomic_by};
use rayon::prelude::*;
use rustix::fs::{Access, FlockOperation, access, flock};

use super::dependencies::Dependencies;
use super::entry::{Entry, ObjectInfo, ObjectPurpose, read_entry, read_info};
use super::paths::{
    EVICTABLE_DIRS, JOB_DIRS, LOCK, TEMP, VERSION, is_gone, object_path, refusal_path, states_path,
    sweep,
};
use crate::error::CompileError;
use crate::source::SourceSet;

/// Code objects by job digest, in a directory that any number of builds may share. Files are
/// written whole and never changed. Damage is found by digest when the bytes are read. The
/// modification time of a file is the hour in which it was last used.
#[derive(Debug)]
pub struct ObjectStore {
    pub(super) dir: PathBuf,
    /// The directory of a second store that is only read.
    pub(super) below: Option<PathBuf>,
    /// Whether each known set of file accesses would have the same results now; for sets about
    /// sources, by source.
    hold: Mutex<HashMap<(Digest, Option<SourceId>), bool>>,
    /// Sets of file accesses that were written in this build.
    written: Mutex<HashSet<Digest>>,
    /// A shared lock, held by all builds.
    pub(super) lock: Option<File>,
}

/// The current state that stored outcomes are compared with.
#[derive(Debug, Clone, Copy)]
pub struct ValidityCheck<'a> {
    /// The file system.
    pub(crate) file_system: &'a FileSystemCache<'a>,
    /// The plan's sources, of which the command names one.
    pub(crate) sources: &'a SourceSet,
    /// The commands that each driver would run.
    pub(crate) drivers: &'a Drivers<'a>,
    /// The job's command.
    pub(crate) command: Command<'a>,
    /// Names of the directories besides the sources that compilers may read.
    pub(crate) admitted: &'a [Digest],
}

impl ValidityCheck<'_> {
    /// Whether compilers may read the directory with that name.
    pub(crate) fn admits(&self, dir: &Digest) -> bool {
        self.admitted.contains(dir)
    }

    /// Whether the job's driver would run the commands with this name; true without a name. May run
    /// the driver.
    pub(crate) fn runs(&self, commands: Option<Digest>) -> bool {
        commands.is_none_or(|commands| self.drivers.name(&self.command) == commands)
    }
}

impl ObjectStore {
    /// The store below a cache directory, which is created if necessary. While this value lives,
    /// nothing is evicted.
    ///
    /// # Errors
    /// [`CompileError::File`] if the directory can't be made or written.
    pub fn open(cache_dir: &Path) -> Result<Self, CompileError> {
        let mut store = Self::open_to_look(cache_dir);
        let temp = store.dir.join(TEMP);
        fs::create_dir_all(&temp).map_err(FileError::io("create", &temp))?;
        for kind in EVICTABLE_DIRS.into_iter().chain([TEMP]) {
            let dir = store.dir.join(kind);
            create_dir_as_above(&dir).map_err(FileError::io("create", &dir))?;
            // Other users may have created these directories.
            let below = JOB_DIRS.contains(&kind).then(|| fs::read_dir(&dir).ok()).flatten();
            let below = below.into_iter().flatten().flatten().map(|entry| entry.path());
            for dir in below.chain([dir]) {
                let denied = |error| FileError::io("write", &dir)(io::Error::from(error));
                access(&dir, Access::WRITE_OK).map_err(denied)?;
            }
        }
        let path = store.dir.join(LOCK);
        // NFS refuses a shared lock on a file that is opened only for writing.
        let lock = File::options().create(true).read(true).append(true).open(&path);
        let lock = lock.map_err(FileError::io("write", &path))?;
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
    /// [`CompileError::File`] if the second one can't be created.
    pub fn open_above(cache_dir: &Path, above: &Path) -> Result<Self, CompileError> {
        let mut store = Self::open(above)?;
        store.below = Some(cache_dir.join(VERSION));
        Ok(store)
    }

    /// The store as it is, even if it does not exist: nothing is created or removed.
    #[must_use]
    pub fn open_to_look(cache_dir: &Path) -> Self {
        let dir = cache_dir.join(VERSION);
        Self { dir, below: None, hold: Mutex::default(), written: Mutex::default(), lock: None }
    }

    /// Removes a job's object, and its kept refusal.
    pub fn remove(&self, job: Digest) {
        fs::remove_file(self.dir.join(object_path(job))).ok();
        fs::remove_file(self.dir.join(refusal_path(job))).ok();
    }

    /// Opens a file of this store, or of the read-only one.
    pub(super) fn open_file(&self, path: &Path) -> io::Result<File> {
        match (File::open(self.dir.join(path)), &self.below) {
            (Err(error), Some(below)) if is_gone(&error) => File::open(below.join(path)),
            (opened, _) => opened,
        }
    }

    /// The directory that new objects are written to.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
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

    /// Information about a job's stored object, if it is up to date: every file access of its
    /// compiler would have the same result now. Marks the object as used. Its bytes are not read.
    #[must_use]
    pub fn lookup(&self, job: Digest, check: ValidityCheck<'_>) -> Option<ObjectInfo> {
        let file = self.open_file(&object_path(job)).ok()?;
        let info = info_of(&file, job).filter(|info| self.all_hold(info, check))?;
        note_use(&file);
        Some(info)
    }

    /// Information about a job's stored object, even if it is out of date.
    #[must_use]
    pub fn info(&self, job: Digest) -> Option<ObjectInfo> {
        self.info_at(&object_path(job), job)
    }

    /// Information about the object in a job's file; `None` if the file belongs to another job.
    pub(super) fn info_at(&self, path: &Path, job: Digest) -> Option<ObjectInfo> {
        info_of(&self.open_file(path).ok()?, job)
    }

    /// The purpose of a stored object; `None` if not known.
    #[must_use]
    pub fn about(&self, job: Digest) -> Option<ObjectPurpose> {
        let file = self.open_file(&object_path(job)).ok()?;
        Some(Entry::split(&read_entry(file).ok()?)?.about)
    }

    /// The results of the file accesses of a stored object's compiler: absolute
    /// paths for the file system, relative ones for the sources.
    #[must_use]
    pub fn path_states(&self, info: &ObjectInfo) -> Vec<PathStates> {
        info.states.iter().filter_map(|name| self.read_states(*name)).collect()
    }

    /// The job's object.
    ///
    /// # Errors
    /// [`CompileError::CorruptObject`] if the bytes are not those that were stored, or are gone;
    /// the entry is then removed, so that the next build makes it anew. [`CompileError::File`] if
    /// it can't be read.
    pub fn read(&self, job: Digest) -> Result<Vec<u8>, CompileError> {
        self.read_whole(job).map(|(_, bytes)| bytes)
    }

    pub(super) fn read_whole(&self, job: Digest) -> Result<(ObjectInfo, Vec<u8>), CompileError> {
        let path = object_path(job);
        let bytes = match self.read_entry(&path) {
            // Evicted or removed since the lookup.
            Err(error) if is_gone(&error) => return Err(CompileError::CorruptObject(job)),
            read => read.map_err(FileError::io("read", self.dir.join(&path)))?,
        };
        let Some(Entry { info, object, .. }) = Entry::parse(&bytes, job) else {
            self.drop_one(job, &path)?;
            return Err(CompileError::CorruptObject(job));
        };
        Ok((info, object.to_vec()))
    }

    /// The job's object, if it has the given SHA-256.
    ///
    /// # Errors
    /// As [`ObjectStore::read`]; [`CompileError::CorruptObject`] also if the object is another one,
    /// which is kept.
    pub fn read_known(&self, job: Digest, sha256: Digest) -> Result<Vec<u8>, CompileError> {
        let (info, bytes) = self.read_whole(job)?;
        if info.sha256 == sha256 { Ok(bytes) } else { Err(CompileError::CorruptObject(job)) }
    }

    /// Reads the jobs' objects in parallel, to remove damaged ones.
    pub fn drop_damaged(&self, jobs: &[Digest]) {
        jobs.par_iter().for_each(|&job| drop(self.read(job)));
    }

    /// Removes a damaged object, if possible. In a read-only store, it is hidden by a new file
    /// above it.
    pub(super) fn drop_one(&self, job: Digest, path: &Path) -> Result<(), FileError> {
        tracing::warn!(%job, "dropping a damaged object");
        if fs::remove_file(self.dir.join(path)).is_err() && self.below.is_some() {
            // This is too short for a lookup, so the object is compiled again.
            self.write(path, &[b"damaged below\n"])?;
        }
        Ok(())
    }

    /// Stores the job's object, with its dependencies besides the digest.
    ///
    /// # Errors
    /// [`CompileError::File`] if it can't be written; nothing half-written stays.
    pub fn insert(
        &self,
        job: Digest,
        bytes: &[u8],
        about: &ObjectPurpose,
        dependencies: &Dependencies,
    ) -> Result<ObjectInfo, CompileError> {
        let states = self.insert_states(dependencies)?;
        let (info, header, about) = ObjectInfo::for_object(job, bytes, about, states, dependencies);
        self.write(&object_path(job), &[&header, bytes, &about])?;
        Ok(info)
    }

    /// Stores the sets of file accesses that are not empty, and returns their names.
    pub(super) fn insert_states(
        &self,
        dependencies: &Dependencies,
    ) -> Result<Vec<Digest>, CompileError> {
        let own = [&dependencies.system, &dependencies.sources].into_iter();
        let own: Vec<_> =
            own.filter(|states| !states.is_empty()).map(PathStates::to_kept).collect();
        let mut names = Vec::new();
        for StoredPathStates { name, text } in
            own.iter().chain(dependencies.shared.iter().map(Arc::as_ref))
        {
            // Written at most once per build, but again if the file was found missing or damaged.
            if !self.written.lock().expect("no panic inside").contains(name) {
                self.write(&states_path(*name), &[text])?;
                self.written.lock().expect("no panic inside").insert(*name);
            }
            names.push(*name);
        }
        Ok(names)
    }

    pub(crate) fn write(&self, path: &Path, parts: &[&[u8]]) -> Result<(), FileError> {
        let path = self.dir.join(path);
        write_atomic_by(&path, &self.dir.join(TEMP), parts).map_err(FileError::io("write", path))
    }

    /// The set of file accesses with that name; `None` if it is missing or damaged.
    pub fn read_states(&self, name: Digest) -> Option<PathStates> {
        PathStates::from_text(name, &self.read_file(&states_path(name)).ok()?)
    }

    /// Whether all dependencies of an outcome still hold.
    pub(super) fn all_hold(&self, info: &ObjectInfo, check: ValidityCheck<'_>) -> bool {
        info.admitted.iter().all(|dir| check.admits(dir))
            && info.states.iter().all(|name| self.holds(*name, check))
            && check.runs(info.commands)
    }

    pub(super) fn holds(&self, name: Digest, check: ValidityCheck<'_>) -> bool {
        // Locked while files are hashed, so that not every worker hashes them.
        let mut known = self.hold.lock().expect("no panic inside");
        let source = check.command.source;
        let of = |source| known.get(&(name, source)).copied();
        if let Some(holds) = of(None).or_else(|| of(Some(source))) {
            return holds;
        }
        let Some(states) = self.read_states(name) else { return false };
        let is_of_sources = states.are_relative();
        let holds = if is_of_sources {
            check.sources.first_change(source, &states, check.file_system.digests()).is_none()
        } else {
            states.hold(check.file_system)
        };
        known.insert((name, is_of_sources.then_some(source)), holds);
        holds
    }

    /// The file of a job's object, below the store's directory.
    pub(crate) fn entry_name(job: Digest) -> String {
        object_path(job).to_str().expect("hexadecimal").to_owned()
    }

    /// Forgets what was known of a set of file accesses that was written anew.
    pub(crate) fn forget_states(&self, name: Digest) {
        self.hold.lock().expect("no panic inside").retain(|(known, _), _| *known != name);
        self.written.lock().expect("no panic inside").remove(&name);
    }
}

fn info_of(file: &File, job: Digest) -> Option<ObjectInfo> {
    read_info(file).ok()?.filter(|info| info.job == job)
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{about_it, as_another_build, depends_on, fixture};
    use super::*;

    /// The object that another build finds.
    fn found(store: &ObjectStore, job: Digest) -> Option<ObjectInfo> {
        as_another_build(|check| store.lookup(job, check))
    }

    #[test]
    fn stored_objects_are_read_back() {
        let f = fixture();
        assert_eq!(found(&f.store, f.job), None);
        let info =
            f.store.insert(f.job, b"\x7fELF\nx", &about_it(), &Dependencies::default()).unwrap();
        assert_eq!(found(&f.store, f.job), Some(info));
        assert_eq!(f.store.read(f.job).unwrap(), b"\x7fELF\nx");
        assert_eq!(f.store.about(f.job), Some(about_it()));
    }

    #[test]
    fn an_object_removed_after_its_lookup_is_corrupt() {
        let f = fixture();
        f.store.insert(f.job, b"x", &about_it(), &Dependencies::default()).unwrap();
        f.store.remove(f.job);
        assert!(matches!(f.store.read(f.job), Err(CompileError::CorruptObject(_))));
    }

    #[test]
    fn a_read_only_store_is_read_and_never_touched() {
        let f = fixture();
        f.store.insert(f.job, b"below", &about_it(), &Dependencies::default()).unwrap();
        let path = f.store.dir.join(object_path(f.job));
        let above = tempfile::tempdir().unwrap();
        let store = ObjectStore::open_above(f.dir.path(), above.path()).unwrap();
        assert!(found(&store, f.job).is_some());
        assert_eq!(store.read(f.job).unwrap(), b"below");
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(5).position(|five| five == b"below").unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(store.read(f.job), Err(CompileError::CorruptObject(_))));
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(found(&store, f.job), None, "it is compiled again");
        store.insert(f.job, b"above", &about_it(), &Dependencies::default()).unwrap();
        assert_eq!(store.read(f.job).unwrap(), b"above");
    }

    #[test]
    fn every_damaged_object_is_found_and_removed() {
        let whole = {
            let f = fixture();
            f.store.insert(f.job, b"some object", &about_it(), &Dependencies::default()).unwrap();
            fs::read(f.store.dir.join(object_path(f.job))).unwrap()
        };
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|at| whole[..at].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x04;
            bytes
        }));
        let f = fixture();
        f.store.insert(f.job, b"x", &about_it(), &Dependencies::default()).unwrap();
        for bytes in damaged {
            fs::write(f.store.dir.join(object_path(f.job)), &bytes).unwrap();
            match f.store.read(f.job) {
                // Only damage that does not change the meaning may go unnoticed.
                Ok(read) => assert_eq!(read, b"some object"),
                Err(CompileError::CorruptObject(_)) => {
                    assert!(!f.store.dir.join(object_path(f.job)).exists());
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Root may remove any file, so this shows nothing if root runs it.
    #[test]
    fn a_damaged_object_that_cannot_be_removed_is_still_reported_as_damaged() {
        let f = fixture();
        f.store.insert(f.job, b"x", &about_it(), &Dependencies::default()).unwrap();
        let path = f.store.dir.join(object_path(f.job));
        fs::write(&path, "damaged").unwrap();
        let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path.parent().unwrap(), mode(0o555)).unwrap();
        let looking = ObjectStore::open_to_look(f.dir.path());
        assert!(matches!(looking.read(f.job), Err(CompileError::CorruptObject(_))));
        let opened = ObjectStore::open(f.dir.path());
        assert!(opened.is_err() || rustix::process::geteuid().is_root(), "{opened:?}");
        fs::set_permissions(path.parent().unwrap(), mode(0o755)).unwrap();
    }

    #[test]
    fn another_jobs_file_is_a_miss() {
        let (f, other) = (fixture(), Digest::of(b"another job"));
        f.store.insert(other, b"another object", &about_it(), &Dependencies::default()).unwrap();
        let path = |job| f.store.dir.join(object_path(job));
        fs::create_dir_all(path(f.job).parent().unwrap()).unwrap();
        fs::copy(path(other), path(f.job)).unwrap();
        assert_eq!(found(&f.store, f.job), None);
        assert!(matches!(f.store.read(f.job), Err(CompileError::CorruptObject(_))));
        assert!(!path(f.job).exists() && found(&f.store, other).is_some());
    }

    #[test]
    fn a_changed_answer_makes_it_a_miss() {
        let f = fixture();
        let (header, later) = (f.dir.path().join("limits"), f.dir.path().join("later.h"));
        fs::write(&header, "1").unwrap();
        let dependencies = depends_on([(&header, Some("1")), (&later, None)]);
        f.store.insert(f.job, b"object", &about_it(), &dependencies).unwrap();
        let is_there = || found(&ObjectStore::open(f.dir.path()).unwrap(), f.job).is_some();
        assert!(is_there());
        fs::write(&header, "2").unwrap();
        assert!(!is_there());
        fs::write(&header, "1").unwrap();
        assert!(is_there());
        fs::write(&later, "").unwrap();
        assert!(!is_there());
    }

    #[test]
    fn an_object_with_unknown_dependencies_is_for_one_build() {
        let f = fixture();
        let dependencies = Dependencies::for_one_build(PathStates::default());
        f.store.insert(f.job, b"object", &about_it(), &dependencies).unwrap();
        assert_eq!(f.store.read(f.job).unwrap(), b"object");
        assert_eq!(found(&ObjectStore::open(f.dir.path()).unwrap(), f.job), None);
    }
}
