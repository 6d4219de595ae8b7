//! Builds the .rpms by the recipes for distributions as these use them: offline, from the source
//! tarball, and checked by rpmlint.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use xshell::{Shell, cmd};

use crate::print;
use crate::setup::{self, Need, need};

pub(super) const NEEDS: &[Need] = &[
    need("rpmbuild", "build by the rpm recipe", "rpm", "rpm-build"),
    need("rpmlint", "hold .rpm packages to what distributions ask of them", "rpmlint", "rpmlint"),
];

/// Runs in a namespace without a network, as root of the namespace.
const OFFLINE: [&str; 3] = ["--map-root-user", "--net", "--"];

/// Writes the .rpms made from the source tarball to `target/dist`.
pub(super) fn build(
    sh: &Shell,
    root: &Path,
    tarball: &Path,
    install: bool,
) -> anyhow::Result<Vec<PathBuf>> {
    setup::ensure(sh, NEEDS, install)?;
    let (stage, out) = (root.join("target/rpm"), root.join("target/dist"));
    sh.remove_path(&stage)?;
    let sources = stage.join("SOURCES");
    sh.create_dir(&sources)?;
    sh.copy_file(tarball, &sources)?;
    let top = format!("_topdir {}", stage.display());
    // Outside of rpm's own distributions, rpm knows no installed packages.
    let known = if Path::new("/etc/debian_version").exists() { Some("--nodeps") } else { None };
    let recipes = ["gfxpack.spec", "gfxpack-runtime.spec"];
    let recipes = recipes.map(|name| root.join("packaging/rpm").join(name));
    for recipe in &recipes {
        cmd!(sh, "unshare {OFFLINE...} rpmbuild -bb {known...} --define {top} {recipe}")
            .run()
            .context("failed to build by the rpm recipe")?;
    }
    let mut made = Vec::new();
    for architecture in sh.read_dir(stage.join("RPMS"))? {
        for path in sh.read_dir(architecture)? {
            sh.copy_file(&path, &out)?;
            made.push(out.join(path.file_name().context("a package without a name")?));
        }
    }
    let settings = root.join("packaging/rpmlint.toml");
    let packages = &made;
    let judged = cmd!(sh, "rpmlint --config {settings} {recipes...} {packages...}");
    let judged = judged.ignore_status().read()?;
    print(&judged);
    ensure!(judged.contains(" 0 errors, 0 warnings"), "failed to satisfy rpmlint");
    sh.remove_path(&stage)?;
    Ok(made)
}
