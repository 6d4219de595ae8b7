//! `cargo xtask bench`: measures how fast gfxpack is, in comparison with other
//! tools in the same run.

mod again;
mod ask;
mod build;
mod built;
mod kdb;
mod keys;
mod measure;
mod package;
mod read;
mod remote;
mod scale;
mod table;

use clap::{Args, Subcommand};
use xshell::Shell;

use crate::root::root;

/// Measure, print a table, and write it into docs/benchmarks.md
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Again(again::Again),
    Ask(ask::Ask),
    Build(build::Build),
    Kdb(kdb::Kdb),
    Package(package::Package),
    Read(read::Read),
    Remote(remote::Remote),
    Scale(scale::Scale),
}

impl Bench {
    /// # Errors
    /// If something can't be built or run.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        sh.change_dir(root());
        match &self.what {
            What::Again(again) => again.run(sh),
            What::Ask(ask) => ask.run(sh),
            What::Build(build) => build.run(sh),
            What::Kdb(kdb) => kdb.run(sh),
            What::Package(package) => package.run(sh),
            What::Read(read) => read.run(sh),
            What::Remote(remote) => remote.run(sh),
            What::Scale(scale) => scale.run(sh),
        }
    }
}
