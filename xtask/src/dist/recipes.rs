//! Tests the recipes for distributions as these use them: offline, from the
//! source tarball, and checked by their tools.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use xshell::{Shell, cmd};

use super::source;
use crate::print::print;
use crate::setup::{self, Need, need};

pub(super) const CC: Need =
    need("cc", "build the bundled SQLite and compression libraries", "gcc libc6-dev", "gcc");

pub(super) const NEEDS: &[Need] = &[
    CC,
    need("dpkg-buildpackage", "build by the Debian recipe", "dpkg-dev", "dpkg-dev"),
    need("dh", "build by the Debian recipe", "debhelper", "debhelper"),
    need("lintian", "hold .deb packages to Debian's policy", "lintian", ""),
    need("rpmbuild", "build by the rpm recipe", "rpm", "rpm-build"),
    need("rpmlint", "hold .rpm packages to what distributions ask of them", "rpmlint", "rpmlint"),
];

/// Writes the recipes' packages to `target/dist`.
pub(super) fn build(sh: &Shell, root: &Path, install: bool) -> anyhow::Result<()> {
    setup::ensure(sh, NEEDS, install)?;
    let tarball = source::write(sh, root)?;
    let stage = root.join("target/recipes");
    sh.remove_path(&stage)?;
    let out = root.join("target/dist");
    let mut made = deb(sh, &tarball, &stage.join("deb"), &out)?;
    made.extend(rpms(sh, root, &tarball, install)?);
    sh.remove_path(&stage)?;
    made.iter().for_each(|path| print(&format!("wrote {}", path.display())));
    Ok(())
}

/// Runs in a namespace without a network, as root of the namespace.
const OFFLINE: [&str; 3] = ["--map-root-user", "--net", "--"];

fn deb(sh: &Shell, tarball: &Path, stage: &Path, out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    sh.create_dir(stage)?;
    let tree = stage.join("gfxpack");
    sh.create_dir(&tree)?;
    cmd!(sh, "tar --extract --file {tarball} --strip-components=1 --directory {tree}").run()?;
    let recipe = tree.join("packaging/debian");
    cmd!(sh, "cp --recursive {recipe} {tree}").run()?;
    // Rust may be installed without a package.
    let in_tree = sh.push_dir(&tree);
    cmd!(sh, "unshare {OFFLINE...} dpkg-buildpackage --build=binary --no-sign")
        .arg("--no-check-builddeps")
        .run()
        .context("failed to build by the Debian recipe")?;
    drop(in_tree);
    let made = moved(stage, ".deb", out)?;
    let packages = &made;
    cmd!(sh, "lintian --allow-root --fail-on error,warning {packages...}")
        .run()
        .context("failed to keep to Debian's policy")?;
    Ok(made)
}

/// Writes the .rpms made from the source tarball to `target/dist`.
///
/// # Errors
/// If a tool is missing, the build fails, or rpmlint has any finding.
pub(super) fn rpms(
    sh: &Shell,
    root: &Path,
    tarball: &Path,
    install: bool,
) -> anyhow::Result<Vec<PathBuf>> {
    setup::ensure(sh, NEEDS, install)?;
    let (stage, out) = (root.join("target/recipes/rpm"), root.join("target/dist"));
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
    for entry in fs::read_dir(stage.join("RPMS"))? {
        made.extend(moved(&entry?.path(), ".rpm", &out)?);
    }
    let settings = root.join("packaging/rpmlint.toml");
    let packages = &made;
    let judged = cmd!(sh, "rpmlint --config {settings} {recipes...} {packages...}");
    let judged = judged.ignore_status().read()?;
    print(&judged);
    ensure!(judged.contains(" 0 errors, 0 warnings"), "failed to satisfy rpmlint");
    Ok(made)
}

/// Moves files with this extension, and returns their new paths, sorted.
fn moved(from: &Path, ending: &str, to: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_owned();
        if name.to_string_lossy().ends_with(ending) {
            fs::rename(&path, to.join(&name))?;
            made.push(to.join(name));
        }
    }
    made.sort();
    ensure!(!made.is_empty(), "failed to find a {ending} in `{}`", from.display());
    Ok(made)
}
