//! What is asked again before what a store has of a job counts.

use gfxpack_plan::plan::Job;
use gfxpack_process::Cancel;
use gfxpack_process::watch::Looks;

use crate::engine::Drivers;
use crate::source::SourceSet;
use crate::store::{Now, ObjectStore};
use crate::toolchain::Toolchain;

/// The file system, the sources and the drivers, as they are while a command
/// runs: each file is looked at once, each driver asked once.
#[derive(Debug)]
pub struct Current<'a> {
    looks: &'a Looks<'a>,
    sources: &'a SourceSet,
    drivers: Drivers<'a>,
}

impl<'a> Current<'a> {
    /// For a plan's sources and toolchains, both in its order. What drivers say
    /// is kept in the store.
    #[must_use]
    pub fn new(
        looks: &'a Looks<'a>,
        sources: &'a SourceSet,
        toolchains: &'a [Toolchain],
        store: &'a ObjectStore,
        cancel: &'a Cancel,
    ) -> Self {
        Self { looks, sources, drivers: Drivers::new(toolchains, store.dir(), looks, cancel) }
    }

    /// What is asked for one job of the plan.
    #[must_use]
    pub fn of(&self, job: &Job) -> Now<'_> {
        Now {
            looks: self.looks,
            source: Some((self.sources, job.source)),
            commands: self.drivers.commands_digest(job),
        }
    }

    pub(crate) fn drivers(&self) -> &Drivers<'a> {
        &self.drivers
    }
}
