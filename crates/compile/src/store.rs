//! The object store: one file per job digest, each with what it takes to
//! trust it again.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use gfxpack_plan::Digest;
use gfxpack_plan::digest::Hasher;
use serde::{Deserialize, Serialize};

use crate::error::CompileError;
use crate::file_digest::FileDigests;
use crate::work::write_atomic_by;

/// The layout of the files below; another number is another directory.
const VERSION: &str = "v1";
/// Where files are written before they get their names.
const TEMP: &str = "tmp";
/// How long a file that is being written may take before it is taken for a
/// killed build's: objects are written in milliseconds.
const MAX_TEMP_AGE: Duration = Duration::from_secs(24 * 3600);
/// A header line is far shorter; a longer one is damage.
const MAX_HEADER: u64 = 64 * 1024;

/// What the store knows of an object without reading its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectInfo {
    /// SHA-256 of the object's bytes.
    pub sha256: Digest,
    /// Bytes.
    pub size: u64,
    /// The set of files outside source and toolchain that the compiler read
    /// (the C++ library's headers), if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deps: Option<Digest>,
}

/// Code objects by job digest, in a directory that any number of builds may
/// share. Files are written whole and never changed; damage is found by
/// digest when the bytes are read.
#[derive(Debug)]
pub struct ObjectStore {
    dir: PathBuf,
    /// Whether each known set of dependencies is as it was.
    fresh: Mutex<HashMap<Digest, bool>>,
}

type DepSet = Vec<(PathBuf, Digest)>;

impl ObjectStore {
    /// The store below a cache directory, which is made if need be.
    ///
    /// # Errors
    /// [`CompileError::Io`] where the directory can't be made.
    pub fn open(cache_dir: &Path) -> Result<Self, CompileError> {
        let store = Self::open_to_look(cache_dir);
        let temp = store.dir.join(TEMP);
        fs::create_dir_all(&temp).map_err(CompileError::io("create", &temp))?;
        sweep(&temp);
        Ok(store)
    }

    /// The store as it is, which need not exist: nothing is made or swept.
    #[must_use]
    pub fn open_to_look(cache_dir: &Path) -> Self {
        Self { dir: cache_dir.join(VERSION), fresh: Mutex::default() }
    }

    /// Forgets a job's object.
    pub(crate) fn remove(&self, job: Digest) {
        fs::remove_file(self.object_path(job)).ok();
    }

    fn object_path(&self, job: Digest) -> PathBuf {
        let name = job.to_string();
        self.dir.join("objects").join(&name[..2]).join(name)
    }

    fn deps_path(&self, set: Digest) -> PathBuf {
        self.dir.join("deps").join(format!("{set}.json"))
    }

    /// Whether the store has the job's object and the files that the compiler
    /// read for it are unchanged. The bytes are not read.
    #[must_use]
    pub fn lookup(&self, job: Digest, digests: &FileDigests) -> Option<ObjectInfo> {
        let path = self.object_path(job);
        let mut file = BufReader::new(fs::File::open(&path).ok()?);
        let found = read_header(&mut file).ok().filter(|(info, header)| {
            let whole =
                file.get_ref().metadata().is_ok_and(|meta| meta.len() == header + info.size);
            whole && info.deps.is_none_or(|set| self.deps_are_fresh(set, digests))
        });
        found.map(|(info, _)| info)
    }

    /// The job's object.
    ///
    /// # Errors
    /// [`CompileError::CorruptObject`] where the bytes are not those that
    /// were stored; the entry is removed then, so that the next build makes
    /// it anew. [`CompileError::Io`] where it can't be read.
    pub fn read(&self, job: Digest) -> Result<Vec<u8>, CompileError> {
        let path = self.object_path(job);
        let read = || -> io::Result<Option<Vec<u8>>> {
            let mut file = BufReader::new(fs::File::open(&path)?);
            let Ok((info, _)) = read_header(&mut file) else { return Ok(None) };
            let mut bytes = Vec::new();
            file.take(info.size.saturating_add(1)).read_to_end(&mut bytes)?;
            Ok((bytes.len() as u64 == info.size && Digest::of(&bytes) == info.sha256)
                .then_some(bytes))
        };
        match read() {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => {
                fs::remove_file(&path).map_err(CompileError::io("remove", &path))?;
                Err(CompileError::CorruptObject(job))
            }
            Err(source) => Err(CompileError::io("read", path)(source)),
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
        mut deps: DepSet,
    ) -> Result<ObjectInfo, CompileError> {
        deps.sort();
        deps.dedup();
        let deps = if deps.is_empty() { None } else { Some(self.insert_deps(&deps)?) };
        let info = ObjectInfo { sha256: Digest::of(bytes), size: bytes.len() as u64, deps };
        let mut header = serde_json::to_vec(&info).expect("plain data");
        header.push(b'\n');
        let path = self.object_path(job);
        self.write(&path, &[&header, bytes])?;
        Ok(info)
    }

    fn insert_deps(&self, deps: &DepSet) -> Result<Digest, CompileError> {
        let text = serde_json::to_vec(deps).expect("plain data");
        let set = Hasher::new("gfxpack deps 1").field(&text).finish();
        let mut fresh = self.fresh.lock().expect("no panic inside");
        // Just digested, so fresh; and on disk once per build at most.
        if fresh.insert(set, true).is_none() {
            let path = self.deps_path(set);
            self.write(&path, &[&text])?;
        }
        Ok(set)
    }

    fn write(&self, path: &Path, parts: &[&[u8]]) -> Result<(), CompileError> {
        write_atomic_by(path, &self.dir.join(TEMP), parts).map_err(CompileError::io("write", path))
    }

    fn deps_are_fresh(&self, set: Digest, digests: &FileDigests) -> bool {
        if let Some(known) = self.fresh.lock().expect("no panic inside").get(&set) {
            return *known;
        }
        let deps: Option<DepSet> = fs::read(self.deps_path(set))
            .ok()
            .filter(|text| Hasher::new("gfxpack deps 1").field(text).finish() == set)
            .and_then(|text| serde_json::from_slice(&text).ok());
        let fresh = deps.is_some_and(|deps| {
            deps.iter().all(|(path, digest)| digests.digest(path).is_ok_and(|now| now == *digest))
        });
        self.fresh.lock().expect("no panic inside").insert(set, fresh);
        fresh
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

/// The header line's content and its length with the line break.
fn read_header(file: &mut impl BufRead) -> io::Result<(ObjectInfo, u64)> {
    let mut line = Vec::new();
    file.take(MAX_HEADER).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((serde_json::from_slice(&line)?, line.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        store: ObjectStore,
        digests: FileDigests,
        job: Digest,
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
        let info = f.store.insert(f.job, b"\x7fELF\nx", Vec::new()).unwrap();
        assert_eq!(f.store.lookup(f.job, &f.digests), Some(info));
        assert_eq!(f.store.read(f.job).unwrap(), b"\x7fELF\nx");
    }

    #[test]
    fn every_damage_is_found_and_dropped() {
        let whole = {
            let f = fixture();
            f.store.insert(f.job, b"some object", Vec::new()).unwrap();
            fs::read(f.store.object_path(f.job)).unwrap()
        };
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|at| whole[..at].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x04;
            bytes
        }));
        let f = fixture();
        f.store.insert(f.job, b"x", Vec::new()).unwrap();
        for bytes in damaged {
            fs::write(f.store.object_path(f.job), &bytes).unwrap();
            match f.store.read(f.job) {
                // Only damage that leaves the meaning alone may pass.
                Ok(read) => assert_eq!(read, b"some object"),
                Err(CompileError::CorruptObject(_)) => {
                    assert!(!f.store.object_path(f.job).exists());
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
        f.store.insert(f.job, b"object", deps).unwrap();
        let reopened = || ObjectStore::open(f.dir.path()).unwrap();
        assert!(reopened().lookup(f.job, &FileDigests::in_memory()).is_some());
        fs::write(&header, "2").unwrap();
        assert!(reopened().lookup(f.job, &FileDigests::in_memory()).is_none());
    }
}
