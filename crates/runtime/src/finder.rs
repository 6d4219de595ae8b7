//! Which files are asked for a kernel, in which order.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{ReadError, Reader};
use gfxpack_plan::code_object::{self, CodeObjectError};
use gfxpack_plan::{KernelKey, Target, TargetId, processors};

use crate::miss::{Miss, MissReason};

/// Looks kernels up in the system kdbs of one device.
#[derive(Debug, Clone)]
pub struct Finder {
    device: TargetId,
    files: Vec<PathBuf>,
}

/// What became of a lookup.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The kernel, where a file has it.
    pub found: Option<Found>,
    /// The files asked before that in vain, in order.
    pub misses: Vec<Miss>,
}

/// A kernel, and the file that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The kdb.
    pub file: PathBuf,
    /// What the device loads; its MD5 and its gfx target are checked.
    pub code_object: Vec<u8>,
}

impl Finder {
    /// A finder for the device in these directories, the first one first.
    ///
    /// In each directory the file for exactly the device's compute units is
    /// asked, then the device-wide one: `gfx90a68.kdb`, `gfx90a.kdb`. XNACK is
    /// part of both names: there is no way from `gfx90a_xnack` to `gfx90a`.
    /// An empty directory name is left out: it would mean the current one.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp, which asks
    /// the device-wide file only where the exact one does not exist.
    pub fn new<P: AsRef<Path>>(directories: impl IntoIterator<Item = P>, device: &Target) -> Self {
        let mut names = vec![device.kdb_file_name()];
        if device.compute_units().is_some() {
            names.push(Target::new(device.id().clone(), None).kdb_file_name());
        }
        let mut files = Vec::new();
        for directory in directories {
            let directory = directory.as_ref();
            if !directory.as_os_str().is_empty() {
                files.extend(names.iter().map(|name| directory.join(name)));
            }
        }
        Self { device: device.id().clone(), files }
    }

    /// The files that are asked, in order, whether they exist or not.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The code object of a key from the first file that has a whole one.
    ///
    /// Every file is opened anew, so that one installed meanwhile is found.
    #[must_use]
    pub fn find(&self, key: &KernelKey) -> Answer {
        let mut misses = Vec::new();
        for file in &self.files {
            match self.ask(file, key) {
                Ok(code_object) => {
                    let found = Found { file: file.clone(), code_object };
                    return Answer { found: Some(found), misses };
                }
                Err(reason) => {
                    tracing::debug!(file = %file.display(), reason = reason.name(), "kernel miss");
                    misses.push(Miss { file: file.clone(), reason });
                }
            }
        }
        Answer { found: None, misses }
    }

    fn ask(&self, file: &Path, key: &KernelKey) -> Result<Vec<u8>, MissReason> {
        let reader = Reader::open(file).map_err(reason)?;
        let code_object = reader.get(key).map_err(reason)?.ok_or(MissReason::NoKernel)?;
        match code_object::targets(&code_object) {
            Ok(targets) if targets.iter().any(|target| target.serves(&self.device)) => {}
            Ok(targets) => return Err(MissReason::OtherTarget(targets)),
            // A device newer than the table of processors: its number can't be
            // judged, and the key names it.
            Err(CodeObjectError::Processor(_))
                if processors::by_name(self.device.processor()).is_none() => {}
            Err(error) => return Err(MissReason::NoCodeObject(error)),
        }
        Ok(code_object)
    }
}

fn reason(error: ReadError) -> MissReason {
    match error {
        error if error.is_absent() => MissReason::NoFile,
        error @ ReadError::Row { .. } => MissReason::Damaged(error),
        error => MissReason::Unreadable(error),
    }
}
