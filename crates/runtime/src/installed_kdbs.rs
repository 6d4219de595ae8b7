//! The installed kdbs of one device: which files, and in which order. Each is
//! opened once, and again when it changes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_kdb::{KdbErrorKind, ReadError, Reader};
use gfxpack_model::{KernelKey, Target};

use crate::connection_pool::Pool;
use crate::file_system::FileIdentity;
use crate::miss::MissReason;
use crate::mutex::lock;
use crate::sqlite_gate::{self, SqliteGate};

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

/// One installed kdb, which may appear, change and disappear.
pub(crate) struct SystemFile {
    path: PathBuf,
    gate: &'static SqliteGate,
    readers: Pool<Reader>,
    /// A fault of the file as a whole, and the version of the file that has it.
    fault: Mutex<Option<(FileIdentity, Arc<ReadError>)>>,
}

impl SystemFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        let gate = sqlite_gate::for_this_process();
        Self { path, gate, readers: Pool::new(gate), fault: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks a key up, and checks the code object against its hash.
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
            return Err(MissReason::Unreadable(Arc::new(sqlite_gate::forked(&self.path))));
        };
        let reader = match self.readers.take(file) {
            Some(reader) => reader,
            None => Reader::open(&self.path).map_err(|error| self.remember(file, error))?,
        };
        let answer = reader.get(key);
        self.readers.give(file, reader);
        drop(inside);
        match answer {
            Ok(Some(code_object)) => Ok(code_object),
            Ok(None) => Err(MissReason::NoKernel),
            // Every lookup in this file would cost as much.
            Err(error) if error.kind() == KdbErrorKind::Runaway => Err(self.remember(file, error)),
            // Other kernels may be in undamaged pages.
            Err(error) => Err(MissReason::of(error)),
        }
    }

    fn unreadable(&self, source: io::Error) -> MissReason {
        MissReason::Unreadable(Arc::new(ReadError::io(&self.path, source)))
    }

    /// Remembers an error that is permanent for this version of the file.
    /// Errors that may be gone at the next attempt are not remembered: too many
    /// open files, no memory, a disk that did not respond.
    fn remember(&self, file: FileIdentity, error: ReadError) -> MissReason {
        let kind = error.kind();
        let reason = MissReason::of(error);
        if let MissReason::Unreadable(error) = &reason
            && (kind.is_damage()
                || matches!(kind, KdbErrorKind::Journal | KdbErrorKind::Unfinished))
        {
            *lock(&self.fault) = Some((file, Arc::clone(error)));
        }
        reason
    }
}
