//! Digests of files on this machine, remembered while a file's identity
//! (device, inode, size, times) stays the same. Between runs they are kept only
//! where that tells contents apart: [`keeps`].

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use gfxpack_model::Digest;
use rustix::fs::{Access, NFS_SUPER_MAGIC, StatVfsMountFlags, access, statfs, statvfs};
use serde::{Deserialize, Serialize};

use crate::atomic::write_atomic;
use crate::{Timestamp, is_not_found};

const NANOSECONDS: i64 = 1_000_000_000;

/// How long ago a file must have changed for its times to tell it from what
/// it may become in the next moment: clocks of file systems are that coarse.
const SETTLED: Duration = Duration::from_secs(2);

/// So many files are looked for whenever digests are saved, each time others.
const LOOKED_FOR: usize = 1000;

/// What must stay the same for a remembered digest to hold. The change time
/// can't be set back by a program, so a file rewritten within one
/// modification time is seen too.
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
    /// That of a file at a place (device and inode), of so many bytes, with the
    /// times of its last modification and change in nanoseconds since 1970.
    #[must_use]
    pub fn new((device, inode): (u64, u64), size: u64, modified: i64, changed: i64) -> Self {
        let time = |nanoseconds: i64| {
            (nanoseconds.div_euclid(NANOSECONDS), nanoseconds.rem_euclid(NANOSECONDS))
        };
        Self { device, inode, size, modified: time(modified), changed: time(changed) }
    }

    /// That of a file, by what the system tells of it.
    #[must_use]
    pub fn from_metadata(meta: &fs::Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether a change from now on would show in the times.
    fn is_settled(&self) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let since = Duration::new(seconds.unsigned_abs(), nanoseconds.unsigned_abs() as u32);
        let changed = SystemTime::UNIX_EPOCH + since;
        // A time to come is a clock that was set back.
        changed.elapsed().is_ok_and(|age| age > SETTLED)
    }

    /// The same for a change from then on.
    #[must_use]
    pub fn was_settled(&self, since: Timestamp) -> bool {
        self.changed.0.unsigned_abs() + SETTLED.as_secs() < since.0
    }

    /// Whether it had changed just before then, so that a change at that time
    /// may not show.
    #[must_use]
    pub fn is_fresh(&self, then: Timestamp) -> bool {
        self.changed.0.unsigned_abs().abs_diff(then.0) <= SETTLED.as_secs()
    }

    /// Whether a directory is another one than it was, or was renamed meanwhile:
    /// that changes its change time alone, and new files in it others too.
    #[must_use]
    pub fn was_exchanged(self, then: Self) -> bool {
        let is_renamed = self == Self { changed: self.changed, ..then };
        self.place() != then.place() || is_renamed && self != then
    }

    /// Device and inode.
    #[must_use]
    pub fn place(self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// All of it, for a digest.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        let Self { device, inode, size, modified, changed } = self;
        let times = [modified.0, modified.1, changed.0, changed.1];
        let own = [device, inode, size].map(u64::to_le_bytes);
        own.into_iter().chain(times.map(i64::to_le_bytes)).flatten().collect()
    }
}

/// What tells a file from what it may be later: its identity, not its
/// content. `None` where there is no file.
#[must_use]
pub fn state_of(path: &Path) -> Option<Digest> {
    fs::metadata(path).ok().map(|meta| Digest::of(&Identity::from_metadata(&meta).bytes()))
}

type Known = HashMap<PathBuf, (Identity, Digest)>;

#[derive(Debug, Default)]
struct Remembered {
    /// What is kept between runs.
    kept: Known,
    /// What is known in this run alone.
    passing: Known,
    /// Whether `kept` has something new.
    changed: bool,
    /// What holds the files, by device.
    devices: HashMap<u64, FileSystem>,
}

/// What is to be known of a file system.
#[derive(Debug, Clone, Copy)]
struct FileSystem {
    /// What [`keeps`] says.
    keeps: bool,
    /// Whether what it says of a path may be old, unless the file is opened.
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

    /// Where a file's digest is to be looked for and put.
    fn known(&mut self, path: &Path, device: u64) -> (&mut Known, bool) {
        match self.system(path, device).keeps {
            true => (&mut self.kept, true),
            false => (&mut self.passing, false),
        }
    }
}

/// Whether a file's identity tells its content from another one's in another
/// run. An image's files have whatever inodes and times it was packed with, so
/// that those of two images that are mounted one after the other may be the
/// same; and a file that the system makes up has no times of its own. Such file
/// systems can't be written to, and have no blocks.
fn keeps(path: &Path) -> bool {
    statvfs(path).is_ok_and(|system| {
        !system.f_flag.contains(StatVfsMountFlags::RDONLY) && system.f_blocks > 0
    })
}

/// A cache of file digests, kept in a file between runs where one is given.
#[derive(Debug, Default)]
pub struct FileDigests {
    remembered: Mutex<Remembered>,
    /// Files that this process wrote, or has begun to pack.
    outputs: Mutex<HashMap<Identity, Digest>>,
    file: Option<PathBuf>,
}

impl FileDigests {
    /// Remembers within this process only.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Remembers in `file`. One that is missing or damaged is an empty one.
    #[must_use]
    pub fn open(file: &Path) -> Self {
        let kept = fs::read(file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let remembered = Mutex::new(Remembered { kept, ..Remembered::default() });
        Self { remembered, file: Some(file.to_owned()), ..Self::default() }
    }

    /// Reads every file anew, and remembers in `file` what that gives.
    #[must_use]
    pub fn open_anew(file: &Path) -> Self {
        Self { file: Some(file.to_owned()), ..Self::default() }
    }

    /// The SHA-256 of the file's content, symbolic links followed.
    ///
    /// # Errors
    /// Where it can't be read.
    pub fn digest(&self, path: &Path) -> io::Result<Digest> {
        let mut meta = fs::metadata(path)?;
        if self.lock().system(path, meta.dev()).is_nfs {
            meta = fs::File::open(path)?.metadata()?;
        }
        let identity = Identity::from_metadata(&meta);
        let known = self.lock().known(path, identity.device).0.get(path).copied();
        // Another user may have read it.
        let is_readable = || access(path, Access::READ_OK).is_ok();
        if let Some((_, digest)) = known.filter(|(known, _)| *known == identity && is_readable()) {
            return Ok(digest);
        }
        let digest = hash_file(path)?;
        let unchanged =
            fs::metadata(path).is_ok_and(|meta| Identity::from_metadata(&meta) == identity);
        if !unchanged || !identity.is_settled() {
            return Ok(digest);
        }
        let mut remembered = self.lock();
        let (known, is_kept) = remembered.known(path, identity.device);
        known.insert(path.to_owned(), (identity, digest));
        remembered.changed |= is_kept;
        Ok(digest)
    }

    /// The SHA-256 of a file that nobody but this process changes while it runs:
    /// one that it wrote, or packs. It is read once, however new it is.
    ///
    /// # Errors
    /// Where it can't be read.
    pub fn digest_of_output(&self, path: &Path) -> io::Result<Digest> {
        let identity = Identity::from_metadata(&fs::metadata(path)?);
        if let Some(digest) = self.outputs.lock().expect("no panic inside").get(&identity) {
            return Ok(*digest);
        }
        let digest = self.digest(&std::path::absolute(path)?)?;
        self.outputs.lock().expect("no panic inside").insert(identity, digest);
        Ok(digest)
    }

    /// Notes the SHA-256 of an output that was just written.
    pub fn note_output(&self, path: &Path, digest: Digest) {
        if let Ok(meta) = fs::metadata(path) {
            let identity = Identity::from_metadata(&meta);
            self.outputs.lock().expect("no panic inside").insert(identity, digest);
        }
    }

    /// Writes what was learnt to the file, if there is one, without some of the
    /// files that are gone. A failure costs the next run some hashing, so it is
    /// not an error.
    pub fn save(&self) {
        let mut remembered = self.lock();
        let (Some(file), true) = (&self.file, remembered.changed) else { return };
        let Remembered { kept, devices, .. } = &mut *remembered;
        // A map's order is another one in each run. What this run did not look at may
        // be a server that is down.
        let mut looked = 0;
        kept.retain(|path, (identity, _)| {
            let is_known = devices.contains_key(&identity.device);
            looked += usize::from(is_known);
            let is_gone = || fs::metadata(path).is_err_and(|error| is_not_found(&error));
            !is_known || looked > LOOKED_FOR || !is_gone()
        });
        let written = serde_json::to_vec(&remembered.kept)
            .map_err(io::Error::from)
            .and_then(|bytes| write_atomic(file, &[&bytes]));
        match written {
            Ok(()) => remembered.changed = false,
            Err(error) => tracing::debug!(%error, file = %file.display(), "digest cache not saved"),
        }
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
        // A file that was there long before: this very test.
        let file = std::env::current_exe().unwrap();
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
        fs::write(&cache, "no json").unwrap();
        assert_eq!(FileDigests::open(&cache).digest(&file).unwrap(), actual);
    }

    #[test]
    fn a_file_without_times_of_its_own_is_remembered_in_one_run_only() {
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
    fn a_file_that_changes_right_after_it_was_read_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        let digests = FileDigests::in_memory();
        // Within one tick of the clock the times may not tell these apart.
        for number in 0..100 {
            let text = format!("{number:03}");
            fs::write(&file, &text).unwrap();
            assert_eq!(digests.digest(&file).unwrap(), Digest::of(text.as_bytes()));
        }
    }

    #[test]
    fn an_output_is_read_once_however_new_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, file) = (dir.path().join("cache"), dir.path().join("f"));
        fs::write(&file, "written").unwrap();
        let digests = FileDigests::open(&cache);
        assert_eq!(digests.digest_of_output(&file).unwrap(), Digest::of(b"written"));
        digests.note_output(&file, Digest::of(b"noted"));
        assert_eq!(digests.digest_of_output(&file).unwrap(), Digest::of(b"noted"));
        fs::write(&file, "another size").unwrap();
        assert_eq!(digests.digest_of_output(&file).unwrap(), Digest::of(b"another size"));
        // To other processes it is a new file like any other.
        digests.save();
        assert_eq!(FileDigests::open(&cache).digest(&file).unwrap(), Digest::of(b"another size"));
        assert!(!cache.exists());
    }

    #[test]
    fn nothing_remembered_counts_where_all_is_read_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, file) = (dir.path().join("cache"), Path::new("/bin/sh"));
        let identity = Identity::from_metadata(&fs::metadata(file).unwrap());
        let known = Known::from([(file.to_owned(), (identity, Digest::of(b"remembered")))]);
        fs::write(&cache, serde_json::to_vec(&known).unwrap()).unwrap();
        assert_eq!(FileDigests::open(&cache).digest(file).unwrap(), Digest::of(b"remembered"));
        let anew = FileDigests::open_anew(&cache);
        assert_eq!(anew.digest(file).unwrap(), hash_file(file).unwrap());
        anew.save();
        assert_eq!(FileDigests::open(&cache).digest(file).unwrap(), hash_file(file).unwrap());
    }

    #[test]
    fn what_is_learnt_is_kept_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, file) = (dir.path().join("cache"), Path::new("/bin/sh"));
        let digests = FileDigests::open(&cache);
        let digest = digests.digest(file).unwrap();
        digests.save();
        let known: Known = serde_json::from_slice(&fs::read(&cache).unwrap()).unwrap();
        assert_eq!(known[file].1, digest);
    }

    #[test]
    fn what_is_gone_does_not_stay_for_ever() {
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
