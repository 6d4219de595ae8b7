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
    what: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
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
            Benchmark::Again(again) => again.run(sh),
            Benchmark::Ask(ask) => ask.run(sh),
            Benchmark::Build(build) => build.run(sh),
            Benchmark::Kdb(kdb) => kdb.run(sh),
            Benchmark::Package(package) => package.run(sh),
            Benchmark::Read(read) => read.run(sh),
            Benchmark::Remote(remote) => remote.run(sh),
            Benchmark::Scale(scale) => scale.run(sh),
        }
    }
}
