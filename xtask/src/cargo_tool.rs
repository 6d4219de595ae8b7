//! Third-party cargo commands, each in a fixed version, below target/tools.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use xshell::{Shell, cmd};

use crate::print;
use crate::root;

pub(crate) struct CargoTool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The purpose, as a clause after the name.
    pub(crate) does: &'static str,
}

impl CargoTool {
    /// The path of the program, which need not exist.
    pub(crate) fn program(&self) -> PathBuf {
        self.dir().join("bin").join(self.name)
    }

    fn dir(&self) -> PathBuf {
        // Another version has another directory, so that it gets installed.
        root().join("target/tools").join(format!("{}-{}", self.name, self.version))
    }

    /// Makes sure that the program is installed, and returns its path.
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
            print(&format!("missing: {what}, which {}: installing it into {dir:?}", self.does));
            command.run().with_context(|| format!("failed to install {name}"))?;
        }
        Ok(program)
    }
}
