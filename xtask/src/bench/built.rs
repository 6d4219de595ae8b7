//! What benchmarks build, and where they put it.

use std::path::PathBuf;

use xshell::{Shell, cmd};

use crate::root::root;

/// Where benchmarks put their files; kept, since what they build is costly.
pub(super) fn dir() -> PathBuf {
    root().join("target/bench")
}

/// The gfxpack to measure, built for release.
pub(super) fn gfxpack(sh: &Shell) -> anyhow::Result<PathBuf> {
    cmd!(sh, "cargo build --release --package gfxpack --bin gfxpack").run()?;
    Ok(root().join("target/release/gfxpack"))
}
