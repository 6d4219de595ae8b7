//! The installed kdbs of one device: which files, and in which order. Each is
//! opened once, and again when it changes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_kdb::{Fetched, KdbErrorKind, ReadError, Reader, RowMark};
use gfxpack_model::{KernelKey, Target};

use crate::clock;
use crate::connection_pool::Pool;
use crate::file_system::FileIdentity;
use crate::miss::MissReason;
use crate::mutex::lock;
use crate::sqlite_gate::{self, SqliteGate};
use crate::verified_rows::VerifiedRows;

/// How many seconds ago a file must have changed for its rows to be remembered.
/// Two changes within one tick of the file system's clock leave the same time;
/// the coarsest ticks take 2 seconds.
const REST_SECONDS: u64 = 3;

/// The file names for a device, the one for exactly its compute units first.
///
/// XNACK is part of both names: kdbs of `gfx90a` are not used for
/// `gfx90a_xnack`.
///
/// MIOpen opens one of them ([`MiopenKdb`](crate::MiopenKdb)); the runtime
/// searches both.
pub(crate) fn file_names(device: &Target) -> Vec<String> {
    device.with_device_wide().iter().map(Target::kdb_file_name).collect()
}

/// The files that may have the device's kernels, in order.
pub(crate) fn files<'a>(
    directories: impl Iterator<Item = &'a Path>,
    device: &Target,
) -> Vec<SystemFile> {
    let names = file_names(device);
    directories
        // An empty or relative path would mean the working directory.
        .filter(|directory| directory.is_absolute())
        .flat_map(|directory| names.iter().map(|name| directory.join(name)))
        .map(SystemFile::new)
        .collect()
}

/// One installed kdb, which may appear, change and disappear.
pub(crate) struct SystemFile {
    path: PathBuf,
    gate: &'static SqliteGate,
    readers: Pool<Reader>,
    /// A fault of the file as a whole, and the version of the file that has it.
    fault: Mutex<Option<(FileIdentity, Arc<ReadError>)>>,
    /// Raw rows whose MD5 is already checked.
    hashed: VerifiedRows,
    rest_seconds: u64,
}

impl SystemFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        let gate = sqlite_gate::for_this_process();
        Self {
            path,
            gate,
            readers: Pool::new(gate),
            fault: Mutex::new(None),
            hashed: VerifiedRows::default(),
            rest_seconds: REST_SECONDS,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks a key up. The hash of the code object is checked each time if it
    /// is stored as bzip2, else once for each version of the file.
    pub(crate) fn get(&self, key: &KernelKey) -> Result<Vec<u8>, MissReason> {
        let file = match FileIdentity::with_content(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A dangling link is not a missing file.
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
        let Some(inside) = self.gate.enter_shared() else {
            return Err(MissReason::Unreadable(Arc::new(sqlite_gate::forked(self.path.clone()))));
        };
        let reader = match self.readers.take(file) {
            Some(reader) => reader,
            None => Reader::open(&self.path).map_err(|error| self.remember(file, error))?,
        };
        let answer = reader.get_unhashed(key, |row| self.hashed.has(file, row));
        self.readers.give(file, reader);
        drop(inside);
        match answer {
            Ok(Some(Fetched { code_object, hashed_row, .. })) => {
                if let Some(row) = hashed_row {
                    self.note_hashed(file, row);
                }
                Ok(code_object)
            }
            Ok(None) => Err(MissReason::NoKernel),
            Err(error @ ReadError::Row { .. }) => Err(MissReason::Damaged(error)),
            // Every lookup in this file would cost as much.
            Err(error @ ReadError::Runaway { .. }) => Err(self.remember(file, error)),
            // Other kernels may be in undamaged pages.
            Err(error) => Err(MissReason::Unreadable(Arc::new(error))),
        }
    }

    /// Remembers an intact row if the file has not changed meanwhile, and any
    /// later change will change its times.
    fn note_hashed(&self, file: FileIdentity, row: RowMark) {
        if file.has_rested(self.rest_seconds, clock::now())
            && FileIdentity::with_content(&self.path).is_ok_and(|still| still == file)
        {
            self.hashed.note(file, row);
        }
    }

    fn unreadable(&self, source: io::Error) -> MissReason {
        let path = self.path.clone();
        MissReason::Unreadable(Arc::new(ReadError::Io { path, source }))
    }

    /// Remembers an error that is permanent for this version of the file.
    /// Errors that may be gone at the next attempt are not remembered: too many
    /// open files, no memory, a disk that did not respond.
    fn remember(&self, file: FileIdentity, error: ReadError) -> MissReason {
        // Removed since its identity was read.
        if error.is_absent() {
            return MissReason::NoFile;
        }
        let error = Arc::new(error);
        if matches!(
            error.kind(),
            KdbErrorKind::TooSmall
                | KdbErrorKind::Corrupt
                | KdbErrorKind::Schema
                | KdbErrorKind::Journal
        ) {
            *lock(&self.fault) = Some((file, Arc::clone(&error)));
        }
        MissReason::Unreadable(error)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes};
    use std::os::unix::fs::FileExt as _;

    use gfxpack_kdb::{Blob, Row, RowError, WriteOptions, write};

    use super::*;

    const OBJECT: &[u8] = &[0xa5; 40_000];

    struct Installed {
        _directory: tempfile::TempDir,
        path: PathBuf,
        key: KernelKey,
        /// Offset of a byte of the code object in the file.
        at: u64,
    }

    impl Installed {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("gfx906_60.kdb");
            let key = KernelKey { kernel_name: "a.s.o".to_owned(), kernel_args: "".to_owned() };
            let mut options = WriteOptions::default();
            options.blob = Blob::Raw;
            let object = |_| io::Result::Ok(OBJECT.to_vec());
            let row = Row { key: &key, size: OBJECT.len() as u64 };
            write(&path, &[row], &options, object).unwrap();
            let bytes = fs::read(&path).unwrap();
            let run = &OBJECT[..2000];
            let at = bytes.windows(run.len()).position(|window| window == run).unwrap() as u64;
            Self { _directory: directory, path, key, at }
        }

        fn file(&self, rest_seconds: u64) -> SystemFile {
            let mut file = SystemFile::new(self.path.clone());
            file.rest_seconds = rest_seconds;
            file
        }

        fn identity(&self) -> FileIdentity {
            FileIdentity::with_content(&self.path).unwrap()
        }

        /// The row, intact or not.
        fn row(&self) -> RowMark {
            let row = std::cell::Cell::new(None);
            let reader = Reader::open(&self.path).unwrap();
            let note = |mark| row.replace(Some(mark)).is_none();
            reader.get_unhashed(&self.key, note).unwrap();
            row.get().unwrap()
        }

        /// Overwrites a byte of the code object, and restores the modification
        /// time. The change time advances with the next tick of its clock.
        fn put(&self, byte: u8) {
            let (before, metadata) = (self.identity(), fs::metadata(&self.path).unwrap());
            let file = File::options().write(true).open(&self.path).unwrap();
            while self.identity() == before {
                file.write_all_at(&[byte], self.at).unwrap();
                file.set_times(FileTimes::new().set_modified(metadata.modified().unwrap()))
                    .unwrap();
            }
            assert_eq!(fs::metadata(&self.path).unwrap().len(), metadata.len());
        }

        #[track_caller]
        fn assert_whole(&self, file: &SystemFile) {
            assert!(file.get(&self.key).unwrap() == OBJECT);
        }

        #[track_caller]
        fn assert_damaged(&self, file: &SystemFile) {
            let reason = file.get(&self.key).unwrap_err();
            let MissReason::Damaged(ReadError::Row { source, .. }) = &reason else {
                panic!("{reason:?}")
            };
            assert!(matches!(source, RowError::HashMismatch { .. }), "{source}");
        }
    }

    #[test]
    fn a_raw_row_is_hashed_once_for_each_version_of_its_file() {
        let installed = Installed::new();
        let file = installed.file(0);
        installed.assert_whole(&file);
        assert!(file.hashed.has(installed.identity(), installed.row()));
        installed.assert_whole(&file);
        installed.put(0x5a);
        installed.assert_damaged(&file);
        installed.assert_damaged(&file);
        installed.put(0xa5);
        installed.assert_whole(&file);
    }

    #[test]
    fn a_remembered_row_is_not_hashed() {
        let installed = Installed::new();
        installed.put(0x5a);
        let file = installed.file(0);
        installed.assert_damaged(&file);
        assert!(!file.hashed.has(installed.identity(), installed.row()));
        file.hashed.note(installed.identity(), installed.row());
        assert_eq!(file.get(&installed.key).unwrap().len(), OBJECT.len());
    }

    /// The file may change once more without a later time.
    #[test]
    fn no_row_of_a_file_that_has_just_changed_is_remembered() {
        let installed = Installed::new();
        let file = installed.file(3600);
        installed.assert_whole(&file);
        assert!(!file.hashed.has(installed.identity(), installed.row()));
        let before = fs::metadata(&installed.path).unwrap();
        let changed = std::os::unix::fs::MetadataExt::ctime(&before) as u64;
        let rested = |now| installed.identity().has_rested(REST_SECONDS, now);
        assert!(rested(changed + REST_SECONDS) && !rested(changed + REST_SECONDS - 1));
        assert!(!rested(0), "a clock that was set back");
    }
}
