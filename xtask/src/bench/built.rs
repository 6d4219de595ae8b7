//! What several benchmarks build, and where their results go.

use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::table::write_section;
use crate::print::print;
use crate::root::root;

/// The directory for benchmarks' files. It is kept, since building them takes long.
pub(super) fn dir() -> PathBuf {
    root().join("target/bench")
}

/// Builds the gfxpack to measure, for release.
pub(super) fn gfxpack(sh: &Shell) -> anyhow::Result<PathBuf> {
    cmd!(sh, "cargo build --release --package gfxpack --bin gfxpack").run()?;
    Ok(root().join("target/release/gfxpack"))
}

/// Builds an example program of a crate, for release.
pub(super) fn example(sh: &Shell, package: &str, name: &str) -> anyhow::Result<PathBuf> {
    cmd!(sh, "cargo build --release --package {package} --example {name}").run()?;
    Ok(root().join("target/release/examples").join(name))
}

/// Builds a kdb of the example kernels for one target, once.
pub(super) fn kdb(sh: &Shell) -> anyhow::Result<PathBuf> {
    let gfxpack = gfxpack(sh)?;
    let (out, cache) = (dir().join("examples"), dir().join("cache"));
    let manifest = root().join("packaging/examples/kernels.toml");
    cmd!(sh, "{gfxpack} build --manifest {manifest} --target gfx906_60")
        .args([Path::new("--out"), &out, Path::new("--cache-dir"), &cache])
        .run()?;
    Ok(out.join("kdb/gfx906_60.kdb"))
}

/// Writes a kdb with this number of rows, `bz2` or `raw`: the objects of the example kernels,
/// each changed in its last bytes.
pub(super) fn large_kdb(sh: &Shell, rows: u64, path: &Path, form: &str) -> anyhow::Result<()> {
    let (assemble, kdb, rows) =
        (example(sh, "gfxpack-kdb", "assemble")?, kdb(sh)?, rows.to_string());
    cmd!(sh, "{assemble} {kdb} {rows} {path} {form}").quiet().ignore_stdout().run()?;
    Ok(())
}

/// Prints the results, and writes them into a section of docs/benchmarks.md, if one is given.
pub(super) fn publish(section: Option<&str>, text: &str) -> anyhow::Result<()> {
    print(text);
    match section {
        Some(section) => write_section(&root().join("docs/benchmarks.md"), section, text),
        None => Ok(()),
    }
}
