//! `cargo xtask update-miopen`: updates the libMIOpen that `cargo xtask dist`
//! asks to Debian's newest, by running `gfxpack miopen`.

use clap::Args;
use xshell::{Shell, cmd};

use crate::root::root;

/// The lock file.
const LOCK: &str = "packaging/miopen.lock";

/// Pin the newest libMIOpen of Debian's archive in packaging/miopen.lock
#[derive(Debug, Args)]
pub(crate) struct UpdateMiopen {
    /// The suite to take it from
    #[arg(long, default_value = "sid")]
    suite: String,
}

impl UpdateMiopen {
    /// # Errors
    /// If the archive can't be reached or does not have it.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        sh.change_dir(root());
        let miopen = format!("debian:{}", self.suite);
        cmd!(sh, "cargo run --quiet --package gfxpack --bin gfxpack --")
            .args(["miopen", "--miopen", &miopen, "--lock", LOCK])
            .run()?;
        cmd!(sh, "git --no-pager diff --stat -- {LOCK}").ignore_status().run()?;
        Ok(())
    }
}
