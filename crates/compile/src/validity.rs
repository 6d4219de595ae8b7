//! Checks whether stored objects are still valid. The file system, the sources and the drivers are
//! each queried once per build.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gfxpack_launch::Drivers;
use gfxpack_model::Digest;
use gfxpack_plan::plan::Job;
use gfxpack_process::Cancel;
use gfxpack_process::watch::FileSystemCache;
use gfxpack_toolchain::Toolchain;

use crate::context::command_of;
use crate::source::SourceSet;
use crate::store::{COMMANDS, ObjectStore, ValidityCheck};

/// The name under which the store refers to a directory whose path has no links.
pub(crate) fn name_of(dir: &Path) -> Digest {
    Digest::of(dir.as_os_str().as_bytes())
}

/// The state of the file system, the sources and the drivers while a command runs: each file is
/// looked at once, each driver asked once.
#[derive(Debug)]
pub struct ValidityChecker<'a> {
    file_system: &'a FileSystemCache<'a>,
    sources: &'a SourceSet,
    drivers: Drivers<'a>,
    admitted: Vec<Digest>,
}

impl<'a> ValidityChecker<'a> {
    /// For a plan's sources and toolchains, both in the plan's order. The drivers' answers are kept
    /// in the store. Besides the sources, compilers may read the directories `admitted`; an object
    /// whose compiler read others is out of date.
    #[must_use]
    pub fn new(
        file_system: &'a FileSystemCache<'a>,
        sources: &'a SourceSet,
        toolchains: &'a [Toolchain],
        store: &'a ObjectStore,
        cancel: &'a Cancel,
        admitted: &[PathBuf],
    ) -> Self {
        let kept = store.dir().join(COMMANDS);
        let drivers = Drivers::new(toolchains, kept, file_system, cancel);
        let admitted = admitted.iter().map(|dir| name_of(&file_system.real(dir))).collect();
        Self { file_system, sources, drivers, admitted }
    }

    /// The same, but writes nothing to the store.
    #[must_use]
    pub fn without_writing(self) -> Self {
        Self { drivers: self.drivers.without_writing(), ..self }
    }

    /// The validity check for one job of the plan.
    #[must_use]
    pub fn for_job<'j>(&'j self, job: &'j Job) -> ValidityCheck<'j> {
        let Self { file_system, sources, drivers, admitted } = self;
        ValidityCheck { file_system, sources, drivers, command: command_of(job), admitted }
    }

    pub(crate) fn file_system(&self) -> &'a FileSystemCache<'a> {
        self.file_system
    }

    pub(crate) fn drivers(&self) -> &Drivers<'a> {
        &self.drivers
    }
}
