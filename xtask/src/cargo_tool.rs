//! Cargo's commands that others wrote, each of one version, below target/tools.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use xshell::{Shell, cmd};

use crate::root::root;
use crate::say::say;

/// A crate with a program of the same name.
pub(crate) struct CargoTool {
    /// The crate.
    pub(crate) name: &'static str,
    /// The version that is used.
    pub(crate) version: &'static str,
    /// What it does here: a clause after its name.
    pub(crate) does: &'static str,
}

impl CargoTool {
    /// The program, whether it is there or not.
    pub(crate) fn program(&self) -> PathBuf {
        self.dir().join("bin").join(self.name)
    }

    fn dir(&self) -> PathBuf {
        // Another version is another directory, and gets installed.
        root().join("target/tools").join(format!("{}-{}", self.name, self.version))
    }

    /// The program.
    ///
    /// # Errors
    /// Without `install`, where it is missing; with it, where that fails.
    pub(crate) fn ensure(&self, sh: &Shell, install: bool) -> anyhow::Result<PathBuf> {
        let (program, dir) = (self.program(), self.dir());
        if !program.is_file() {
            let (name, what) = (self.name, format!("{}@{}", self.name, self.version));
            let command = cmd!(sh, "cargo install --quiet --locked --root {dir} {what}");
            ensure!(
                install,
                "failed to find {what}, which {}\nhint: give --setup to have `{command}` run",
                self.does
            );
            say(&format!("missing: {what}, which {}: installing it into {dir:?}", self.does));
            command.run().with_context(|| format!("failed to install {name}"))?;
        }
        Ok(program)
    }
}
