//! `cargo xtask ci`: what a change must pass, in the order that fails fastest.

use clap::Args;
use xshell::{Shell, cmd};

use crate::root;
use crate::setup::CargoTool;
use crate::test;

const CARGO_DENY: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "0.20.2",
    does: "checks licences and sources of the dependencies",
};

/// Run format, lints, tests, documentation and dependencies as CI does
#[derive(Debug, Args)]
pub(crate) struct Ci {
    /// Install what is missing from the system's packages, saying first what and why
    #[arg(long)]
    setup: bool,
}

impl Ci {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        test::ensure_tools(sh, self.setup)?;
        sh.change_dir(root());
        cmd!(sh, "cargo fmt --all --check").run()?;
        cmd!(sh, "cargo clippy --workspace --all-targets -- --deny warnings").run()?;
        cmd!(sh, "cargo clippy --package gfxpack --all-targets")
            .args(["--features", "remote,remote-cache", "--", "--deny", "warnings"])
            .run()?;
        test::command(sh, Vec::new()).run()?;
        cmd!(sh, "cargo doc --workspace --no-deps --document-private-items")
            .env("RUSTDOCFLAGS", "--deny warnings")
            .run()?;
        // Advisories need a server; they are checked for releases.
        let program = CARGO_DENY.ensure(sh, self.setup)?;
        cmd!(sh, "{program} check bans licenses sources").run()?;
        Ok(())
    }
}
