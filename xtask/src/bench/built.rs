//! What benchmarks build, where they put it, and where their text goes.

use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::table::write_section;
use crate::root::root;
use crate::say::say;

/// Where benchmarks put their files; kept, since what they build is costly.
pub(super) fn dir() -> PathBuf {
    root().join("target/bench")
}

/// The gfxpack to measure, built for release.
pub(super) fn gfxpack(sh: &Shell) -> anyhow::Result<PathBuf> {
    cmd!(sh, "cargo build --release --package gfxpack --bin gfxpack").run()?;
    Ok(root().join("target/release/gfxpack"))
}

/// A program among a crate's examples, built for release.
pub(super) fn example(sh: &Shell, package: &str, name: &str) -> anyhow::Result<PathBuf> {
    cmd!(sh, "cargo build --release --package {package} --example {name}").run()?;
    Ok(root().join("target/release/examples").join(name))
}

/// A kdb of the built-in kernels for one target, built once and kept.
pub(super) fn kdb(sh: &Shell) -> anyhow::Result<PathBuf> {
    let gfxpack = gfxpack(sh)?;
    let (out, cache) = (dir().join("builtin"), dir().join("cache"));
    let manifest = root().join("packaging/kernels/kernels.toml");
    cmd!(sh, "{gfxpack} build --manifest {manifest} --target gfx906_60")
        .args([Path::new("--out"), &out, Path::new("--cache-dir"), &cache])
        .run()?;
    Ok(out.join("kdb/gfx906_60.kdb"))
}

/// Writes a kdb of so many rows, `bz2` or `raw`: the built-in kernels' objects, each made another
/// one by its last bytes.
pub(super) fn large_kdb(sh: &Shell, rows: u64, path: &Path, form: &str) -> anyhow::Result<()> {
    let (assemble, kdb, rows) =
        (example(sh, "gfxpack-kdb", "assemble")?, kdb(sh)?, rows.to_string());
    cmd!(sh, "{assemble} {kdb} {rows} {path} {form}").quiet().ignore_stdout().run()?;
    Ok(())
}

/// Prints what was measured, and writes it into a section of docs/benchmarks.md, if one is named.
pub(super) fn publish(section: Option<&str>, text: &str) -> anyhow::Result<()> {
    say(text);
    match section {
        Some(section) => write_section(&root().join("docs/benchmarks.md"), section, text),
        None => Ok(()),
    }
}
