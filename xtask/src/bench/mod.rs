//! `cargo xtask bench`: how fast gfxpack is, beside what it is held against,
//! in one run.

mod ask;
mod build;
mod kdb;
mod large;
mod package;
mod remote;
mod scale;
mod table;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use xshell::{Shell, cmd};

use crate::root;

/// Measure, print a table, and write it into docs/benchmarks.md
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Ask(ask::Ask),
    Build(build::Build),
    Kdb(kdb::Kdb),
    Large(large::Large),
    Package(package::Package),
    Remote(remote::Remote),
    Scale(scale::Scale),
}

impl Bench {
    /// # Errors
    /// Where something can't be built or run.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        sh.change_dir(root());
        match &self.what {
            What::Ask(ask) => ask.run(sh),
            What::Build(build) => build.run(sh),
            What::Kdb(kdb) => kdb.run(sh),
            What::Large(large) => large.run(sh),
            What::Package(package) => package.run(sh),
            What::Remote(remote) => remote.run(sh),
            What::Scale(scale) => scale.run(sh),
        }
    }
}

/// Where benchmarks put their files; kept, since what they build is costly.
fn dir() -> PathBuf {
    root().join("target/bench")
}

/// The gfxpack to measure, built for release.
fn gfxpack(sh: &Shell) -> anyhow::Result<PathBuf> {
    cmd!(sh, "cargo build --release --package gfxpack --bin gfxpack").run()?;
    Ok(root().join("target/release/gfxpack"))
}
