//! The state that all commands of a build share.

use std::time::Duration;

use gfxpack_model::ToolchainId;
use gfxpack_process::Cancel;
use gfxpack_process::preload::{self, Environment};
use gfxpack_toolchain::Toolchain;

use crate::drivers::Drivers;

/// The compilers of a build, and settings for every program that is started.
#[derive(Debug)]
pub struct Session<'a> {
    pub(crate) drivers: &'a Drivers<'a>,
    /// The complete environment of each toolchain's programs.
    environments: Vec<Environment>,
    pub(crate) time_limit: Duration,
    pub(crate) cancel: &'a Cancel,
}

impl<'a> Session<'a> {
    /// For the toolchains of these drivers. Each program may run for `time_limit`; `cancel` ends
    /// it.
    #[must_use]
    pub fn new(drivers: &'a Drivers<'a>, time_limit: Duration, cancel: &'a Cancel) -> Self {
        let environments = drivers.toolchains().iter();
        let environments = environments.map(|it| preload::environment(&it.environment)).collect();
        Self { drivers, environments, time_limit, cancel }
    }

    pub(crate) fn toolchain(&self, toolchain: ToolchainId) -> &'a Toolchain {
        &self.drivers.toolchains()[toolchain.0]
    }

    pub(crate) fn environment(&self, toolchain: ToolchainId) -> &Environment {
        &self.environments[toolchain.0]
    }
}
