//! `cargo xtask ci`: what a change must pass, in the order that fails fastest.

use clap::Args;
use xshell::{Shell, cmd};

use crate::root::root;
use crate::{api, test, tidy};

/// Run format, lints, tidy, tests, documentation and interfaces as CI does
#[derive(Debug, Args)]
pub(crate) struct Ci {
    /// Install what is missing from the system's packages, saying first what and why
    #[arg(long)]
    setup: bool,
}

impl Ci {
    /// # Errors
    /// The first step that fails.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        test::ensure_tools(sh, self.setup)?;
        sh.change_dir(root());
        cmd!(sh, "cargo fmt --all --check").run()?;
        tidy::Tidy {}.run()?;
        cmd!(sh, "cargo clippy --workspace --all-targets -- --deny warnings").run()?;
        cmd!(sh, "cargo clippy --package gfxpack --all-targets")
            .args(["--features", "onnx,remote,remote-cache", "--", "--deny", "warnings"])
            .run()?;
        test::command(sh, Vec::new()).run()?;
        cmd!(sh, "cargo doc --workspace --no-deps --document-private-items")
            .env("RUSTDOCFLAGS", "--deny warnings")
            .run()?;
        api::Api { write: false }.run(sh)?;
        Ok(())
    }
}
