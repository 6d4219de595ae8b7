//! Digests of files on this machine, remembered while a file's identity (device, inode, size,
//! times) stays the same. They are stored between runs only on file systems on which the identity
//! changes with the content: [`keeps`].

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use gfxpack_model::Digest;
use rustix::fs::{Access, NFS_SUPER_MAGIC, StatVfsMountFlags, access, statfs, statvfs};
use serde::{Deserialize, Serialize};

use crate::cache_file::write_atomic;
use crate::is_not_found;

const NANOSECONDS: i64 = 1_000_000_000;

/// A file's times distinguish it from later versions only if it changed at least so many seconds ago,
/// since the clocks of file systems are that coarse.
const SETTLED: u64 = 2;

/// At most this many files are checked for existence whenever digests are saved.
const LOOKED_FOR: usize = 1000;

/// The time when something began, to compare with the times of files: seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The current time.
    pub fn now() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "compared with the times of files, and shown in reports"
        )]
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self(now.map_or(0, |since| since.as_secs()))
    }
}

/// A remembered digest is valid while this stays the same. A program can't set the change time
/// back, so a file that is rewritten within one modification time is noticed too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds since 1970, as for `changed`.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    /// The identity of a file with this device and inode and this size in bytes; the times of its
    /// last modification and change are in nanoseconds since 1970.
    pub fn new((device, inode): (u64, u64), size: u64, modified: i64, changed: i64) -> Self {
        let time = |nanoseconds: i64| {
            (nanoseconds.div_euclid(NANOSECONDS), nanoseconds.rem_euclid(NANOSECONDS))
        };
        Self { device, inode, size, modified: time(modified), changed: time(changed) }
    }

    /// The identity of a file, from its metadata.
    pub fn from_metadata(meta: &fs::Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether any change since then would show in the times. A time in the future comes from a
    /// clock that was set back.
    pub fn was_settled(&self, since: Timestamp) -> bool {
        self.changed.0.unsigned_abs() + SETTLED < since.0
    }

    /// Device and inode.
    pub fn file_id(self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

type Known = HashMap<PathBuf, (Identity, Digest)>;

#[derive(Debug, Default)]
struct Remembered {
    /// Digests that are stored between runs.
    kept: Known,
    /// Digests that are valid in this run only.
    passing: Known,
    /// Whether `kept` has new digests.
    changed: bool,
    /// The file systems of the files, by device.
    devices: HashMap<u64, FileSystem>,
}

/// Properties of a file system.
#[derive(Debug, Clone, Copy)]
struct FileSystem {
    /// The result of [`keeps`].
    keeps: bool,
    /// Whether its metadata of a path may be outdated, unless the file is opened.
    ///
    /// Source: nfs(5), "Close-to-open cache consistency".
    is_nfs: bool,
}

impl FileSystem {
    fn of(path: &Path) -> Self {
        let is_nfs = statfs(path).is_ok_and(|system| system.f_type == NFS_SUPER_MAGIC);
        Self { keeps: keeps(path), is_nfs }
    }
}

impl Remembered {
    fn system(&mut self, path: &Path, device: u64) -> FileSystem {
        *self.devices.entry(device).or_insert_with(|| FileSystem::of(path))
    }

    /// The map for digests of a file system's files.
    fn known(&mut self, system: FileSystem) -> &mut Known {
        if system.keeps { &mut self.kept } else { &mut self.passing }
    }
}

/// Whether a file's identity distinguishes its content in other runs too. Files of an image have
/// the inodes and times with which it was packed, so files of two images that are mounted one after
/// the other may have the same identity. Files of pseudo file systems have no times of their own.
/// Such file systems are read-only, or have no blocks.
fn keeps(path: &Path) -> bool {
    statvfs(path).is_ok_and(|system| {
        !system.f_flag.contains(StatVfsMountFlags::RDONLY) && system.f_blocks > 0
    })
}

/// A cache of file digests, stored in a file between runs if it was opened from one.
#[derive(Debug, Default)]
pub struct FileDigests {
    remembered: Mutex<Remembered>,
    /// Digests of files that this process wrote, or packs.
    outputs: Mutex<HashMap<Identity, Digest>>,
    file: Option<PathBuf>,
}

impl FileDigests {
    /// Stores digests in `file`. If that is missing or damaged, the cache is empty.
    pub fn open(file: &Path) -> Self {
        let kept = fs::read(file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let remembered = Mutex::new(Remembered { kept, ..Remembered::default() });
        Self { remembered, file: Some(file.to_owned()), ..Self::default() }
    }

    /// Reads every file anew, and stores the digests in `file`.
    pub fn open_anew(file: &Path) -> Self {
        Self { file: Some(file.to_owned()), ..Self::default() }
    }

    /// The SHA-256 of the file's content, symbolic links followed.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn digest(&self, path: &Path) -> io::Result<Digest> {
        let mut meta = fs::metadata(path)?;
        let system = self.lock().system(path, meta.dev());
        if system.is_nfs {
            meta = fs::File::open(path)?.metadata()?;
        }
        let identity = Identity::from_metadata(&meta);
        let known = self.lock().known(system).get(path).copied();
        // The file may have been readable for another user only.
        let is_readable = || access(path, Access::READ_OK).is_ok();
        if let Some((_, digest)) = known.filter(|(known, _)| *known == identity && is_readable()) {
            return Ok(digest);
        }
        let digest = hash_file(path)?;
        let unchanged =
            fs::metadata(path).is_ok_and(|meta| Identity::from_metadata(&meta) == identity);
        if !unchanged || !identity.was_settled(Timestamp::now()) {
            return Ok(digest);
        }
        let mut remembered = self.lock();
        remembered.known(system).insert(path.to_owned(), (identity, digest));
        remembered.changed |= system.keeps;
        Ok(digest)
    }

    /// The SHA-256 of a file that only this process changes while it runs: one that it wrote, or
    /// packs. The file is read once, even if it is new.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn digest_of_output(&self, path: &Path) -> io::Result<Digest> {
        let identity = Identity::from_metadata(&fs::metadata(path)?);
        if let Some(digest) = self.outputs.lock().expect("no panic inside").get(&identity) {
            return Ok(*digest);
        }
        let digest = self.digest(&std::path::absolute(path)?)?;
        self.outputs.lock().expect("no panic inside").insert(identity, digest);
        Ok(digest)
    }

    /// Records the SHA-256 of an output that was just written.
    pub fn note_output(&self, path: &Path, digest: Digest) {
        if let Ok(meta) = fs::metadata(path) {
            let identity = Identity::from_metadata(&meta);
            self.outputs.lock().expect("no panic inside").insert(identity, digest);
        }
    }

    /// Writes the digests to the file, if there is one, and drops some of the files that no longer
    /// exist. A failure only costs the next run some hashing, so it is not reported.
    pub fn save(&self) {
        let mut remembered = self.lock();
        let (Some(file), true) = (&self.file, remembered.changed) else { return };
        let Remembered { kept, devices, .. } = &mut *remembered;
        // The order of a map differs in each run. A device that this run did not use is not looked
        // at, since its server may be down.
        let mut looked = 0;
        kept.retain(|path, (identity, _)| {
            let is_known = devices.contains_key(&identity.device);
            looked += usize::from(is_known);
            let is_gone = || fs::metadata(path).is_err_and(|error| is_not_found(&error));
            !is_known || looked > LOOKED_FOR || !is_gone()
        });
        let bytes = serde_json::to_vec(&remembered.kept).map_err(io::Error::from);
        remembered.changed = bytes.and_then(|bytes| write_atomic(file, &[&bytes])).is_err();
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().expect("no panic inside")
    }
}

fn hash_file(path: &Path) -> io::Result<Digest> {
    use sha2::{Digest as _, Sha256};
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::from_bytes(hasher.finalize().into())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_file_is_remembered_until_its_identity_changes() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        // A file that is old enough.
        let file = PathBuf::from("/bin/sh");
        let identity = Identity::from_metadata(&fs::metadata(&file).unwrap());
        let remember = |identity| {
            let known = Known::from([(file.clone(), (identity, Digest::of(b"remembered")))]);
            fs::write(&cache, serde_json::to_vec(&known).unwrap()).unwrap();
            FileDigests::open(&cache).digest(&file).unwrap()
        };
        assert_eq!(remember(identity), Digest::of(b"remembered"));
        let others = [
            Identity { inode: 0, ..identity },
            Identity { size: 0, ..identity },
            Identity { modified: (0, 0), ..identity },
            Identity { changed: (0, 0), ..identity },
        ];
        let actual = hash_file(&file).unwrap();
        for other in others {
            assert_eq!(remember(other), actual, "{other:?}");
        }
        // It is stored; a damaged file is empty, and one may be ignored.
        for text in ["no json", "{}"] {
            fs::write(&cache, text).unwrap();
            let digests = FileDigests::open(&cache);
            assert_eq!(digests.digest(&file).unwrap(), actual);
            digests.save();
            let known: Known = serde_json::from_slice(&fs::read(&cache).unwrap()).unwrap();
            assert_eq!(known[&file].1, actual);
        }
        remember(identity);
        assert_eq!(FileDigests::open_anew(&cache).digest(&file).unwrap(), actual);
    }

    #[test]
    fn digests_of_files_without_own_times_are_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        let file = Path::new("/proc/version");
        let identity = Identity::from_metadata(&fs::metadata(file).unwrap());
        let known = Known::from([(file.to_owned(), (identity, Digest::of(b"before")))]);
        fs::write(&cache, serde_json::to_vec(&known).unwrap()).unwrap();
        let digests = FileDigests::open(&cache);
        assert_eq!(digests.digest(file).unwrap(), hash_file(file).unwrap());
        assert!(!digests.lock().changed);
    }

    #[test]
    fn a_change_right_after_reading_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        let digests = FileDigests::default();
        // The times may be equal within one tick of the clock.
        for number in 0..100 {
            let text = format!("{number:03}");
            fs::write(&file, &text).unwrap();
            assert_eq!(digests.digest(&file).unwrap(), Digest::of(text.as_bytes()));
        }
    }

    #[test]
    fn an_output_is_read_once_even_if_it_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, file) = (dir.path().join("cache"), dir.path().join("f"));
        fs::write(&file, "written").unwrap();
        let digests = FileDigests::open(&cache);
        assert_eq!(digests.digest_of_output(&file).unwrap(), Digest::of(b"written"));
        digests.note_output(&file, Digest::of(b"noted"));
        assert_eq!(digests.digest_of_output(&file).unwrap(), Digest::of(b"noted"));
        fs::write(&file, "another size").unwrap();
        assert_eq!(digests.digest_of_output(&file).unwrap(), Digest::of(b"another size"));
        // For other processes, it is a new file like any other.
        digests.save();
        assert_eq!(FileDigests::open(&cache).digest(&file).unwrap(), Digest::of(b"another size"));
        assert!(!cache.exists());
    }

    #[test]
    fn digests_of_removed_files_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, digest) = (dir.path().join("cache"), Digest::of(b""));
        let identity = Identity::from_metadata(&fs::metadata("/bin/sh").unwrap());
        let gone = |number| (dir.path().join(format!("{number}")), (identity, digest));
        let known: Known = (0..LOOKED_FOR * 3).map(gone).collect();
        fs::write(&cache, serde_json::to_vec(&known).unwrap()).unwrap();
        for (file, left) in [("sh", 2), ("cat", 1), ("ls", 0), ("cp", 0)] {
            let (file, digests) = (Path::new("/bin").join(file), FileDigests::open(&cache));
            digests.digest(&file).unwrap();
            digests.save();
            let known: Known = serde_json::from_slice(&fs::read(&cache).unwrap()).unwrap();
            assert!(known.contains_key(&file) && known.len() <= left * LOOKED_FOR + 10);
        }
    }
}
