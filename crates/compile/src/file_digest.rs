//! Digests of files on this machine, remembered while a file's identity
//! (device, inode, size, times) stays the same.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gfxpack_plan::Digest;
use serde::{Deserialize, Serialize};

use crate::error::CompileError;

/// What must stay the same for a remembered digest to hold. The change time
/// can't be set back by a program, so a file rewritten within one
/// modification time is seen too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(meta: &fs::Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

type Known = HashMap<PathBuf, (Identity, Digest)>;

/// A cache of file digests, kept in a file between runs where one is given.
#[derive(Debug, Default)]
pub struct FileDigests {
    known: Mutex<(Known, bool)>,
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
        let known = fs::read(file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        Self { known: Mutex::new((known, false)), file: Some(file.to_owned()) }
    }

    /// The SHA-256 of the file's content, symbolic links followed.
    ///
    /// # Errors
    /// [`CompileError::Io`] where it can't be read.
    pub fn digest(&self, path: &Path) -> Result<Digest, CompileError> {
        let meta = fs::metadata(path).map_err(CompileError::io("read", path))?;
        let identity = Identity::of(&meta);
        if let Some((known, digest)) = self.known.lock().expect("no panic inside").0.get(path)
            && *known == identity
        {
            return Ok(*digest);
        }
        let digest = hash_file(path).map_err(CompileError::io("read", path))?;
        let mut known = self.known.lock().expect("no panic inside");
        known.0.insert(path.to_owned(), (identity, digest));
        known.1 = true;
        Ok(digest)
    }

    /// Writes what was learnt to the file, if there is one. A failure costs
    /// the next run some hashing, so it is not an error.
    pub fn save(&self) {
        let mut known = self.known.lock().expect("no panic inside");
        let (Some(file), true) = (&self.file, known.1) else { return };
        let written = serde_json::to_vec(&known.0)
            .map_err(std::io::Error::from)
            .and_then(|bytes| crate::work::write_atomic(file, &[&bytes]));
        match written {
            Ok(()) => known.1 = false,
            Err(error) => tracing::debug!(%error, file = %file.display(), "digest cache not saved"),
        }
    }
}

fn hash_file(path: &Path) -> std::io::Result<Digest> {
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
    fn a_changed_file_is_seen_and_an_unchanged_one_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, file) = (dir.path().join("cache"), dir.path().join("f"));
        fs::write(&file, "one").unwrap();
        let digests = FileDigests::open(&cache);
        assert_eq!(digests.digest(&file).unwrap(), Digest::of(b"one"));
        digests.save();
        assert_eq!(FileDigests::open(&cache).digest(&file).unwrap(), Digest::of(b"one"));
        // Another inode, so that equal size and a coarse clock do not hide it.
        fs::write(dir.path().join("g"), "two").unwrap();
        fs::rename(dir.path().join("g"), &file).unwrap();
        assert_eq!(FileDigests::open(&cache).digest(&file).unwrap(), Digest::of(b"two"));
        fs::write(&cache, "no json").unwrap();
        assert_eq!(FileDigests::open(&cache).digest(&file).unwrap(), Digest::of(b"two"));
    }
}
