//! The installed kdbs of one device: which files, in which order, each opened
//! once and looked into anew when it changes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_kdb::{ReadError, ReadOptions, Reader};
use gfxpack_plan::{KernelKey, Target};

use crate::file_system::Identity;
use crate::lock;
use crate::miss::MissReason;
use crate::pool::Pool;

/// The file names for a device, the one for exactly its compute units first.
///
/// XNACK is part of both names: there is no way from `gfx90a_xnack` to
/// `gfx90a`.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp, which asks the
/// device-wide file only where the exact one does not exist.
fn file_names(device: &Target) -> Vec<String> {
    let mut names = vec![device.kdb_file_name()];
    if device.compute_units().is_some() {
        names.push(Target::new(device.id().clone(), None).kdb_file_name());
    }
    names
}

/// The files that may have the device's kernels, in order.
pub(crate) fn files<'a>(
    directories: impl Iterator<Item = &'a Path>,
    device: &Target,
    max_object_bytes: u64,
) -> Vec<SystemFile> {
    let names = file_names(device);
    directories
        // An empty or relative one would mean the working directory.
        .filter(|directory| directory.is_absolute())
        .flat_map(|directory| names.iter().map(|name| directory.join(name)))
        .map(|path| SystemFile::new(path, max_object_bytes))
        .collect()
}

/// One installed kdb, which may come, change and go.
pub(crate) struct SystemFile {
    path: PathBuf,
    max_object_bytes: u64,
    readers: Pool<Reader>,
    /// What was wrong with the file as a whole, and which version of it.
    fault: Mutex<Option<(Identity, Arc<ReadError>)>>,
}

impl SystemFile {
    pub(crate) fn new(path: PathBuf, max_object_bytes: u64) -> Self {
        Self { path, max_object_bytes, readers: Pool::new(), fault: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The code object of a key, held against its hash.
    pub(crate) fn get(&self, key: &KernelKey) -> Result<Vec<u8>, MissReason> {
        let file = match Identity::with_content(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A dangling link is no missing file.
                if self.path.is_symlink() {
                    return Err(self.unreadable(error));
                }
                return Err(MissReason::NoFile);
            }
            Err(error) => return Err(self.unreadable(error)),
        };
        if let Some((faulty, error)) = &*lock(&self.fault)
            && *faulty == file
        {
            return Err(MissReason::Unreadable(Arc::clone(error)));
        }
        let reader = match self.readers.take(file) {
            Some(reader) => reader,
            None => self.open().map_err(|error| self.remember(file, error))?,
        };
        let answer = reader.get(key);
        self.readers.give(file, reader);
        match answer {
            Ok(Some(code_object)) => Ok(code_object),
            Ok(None) => Err(MissReason::NoKernel),
            Err(error @ ReadError::Row { .. }) => Err(MissReason::Damaged(error)),
            // It would cost as much for every kernel.
            Err(error @ ReadError::Runaway { .. }) => Err(self.remember(file, error)),
            // Other kernels may lie in pages that are whole.
            Err(error) => Err(MissReason::Unreadable(Arc::new(error))),
        }
    }

    fn open(&self) -> Result<Reader, ReadError> {
        let mut options = ReadOptions::default();
        options.max_object_bytes = self.max_object_bytes;
        Reader::open_with(&self.path, options)
    }

    fn unreadable(&self, source: io::Error) -> MissReason {
        let path = self.path.clone();
        MissReason::Unreadable(Arc::new(ReadError::Io { path, source }))
    }

    fn remember(&self, file: Identity, error: ReadError) -> MissReason {
        // Removed since it was looked at.
        if error.is_absent() {
            return MissReason::NoFile;
        }
        let error = Arc::new(error);
        *lock(&self.fault) = Some((file, Arc::clone(&error)));
        MissReason::Unreadable(error)
    }
}
