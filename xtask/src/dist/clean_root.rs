//! Builds and tests the Debian source package like Debian's build machines: in a root directory
//! with only the packages that it requires, and without a network.

use std::path::Path;

use anyhow::{Context, ensure};
use xshell::{Shell, cmd};

use super::source;
use crate::VERSION;
use crate::print;
use crate::setup::{self, Need, need};

const NEEDS: &[Need] = &[
    need("mmdebstrap", "make a clean root", "mmdebstrap", "mmdebstrap"),
    need("dpkg-source", "make the source package", "dpkg-dev", "dpkg-dev"),
    need("autopkgtest", "test the installed package", "autopkgtest", ""),
];

/// Writes the source package and the .debs to `target/dist/SUITE`.
pub(super) fn build(sh: &Shell, root: &Path, suite: &str, install: bool) -> anyhow::Result<()> {
    setup::ensure(sh, NEEDS, install)?;
    ensure!(
        cmd!(sh, "id -u").quiet().read()? == "0",
        "a clean root is made and entered by root only\nhint: run it in a container, or with sudo"
    );
    let tarball = source::write(sh, root)?;
    let stage = root.join("target/clean-root");
    sh.remove_path(&stage)?;
    sh.create_dir(&stage)?;
    let clean = stage.join("root");
    // A mirror that is a frozen copy has expired lists.
    let old_lists = "--aptopt=Acquire::Check-Valid-Until \"false\"";
    cmd!(sh, "mmdebstrap --variant=buildd {old_lists} --include=lintian,apt-utils {suite} {clean}")
        .run()?;

    let work = clean.join("build");
    sh.create_dir(&work)?;
    source_package(sh, &tarball, &work)?;
    let dsc = format!("gfxpack_{VERSION}-1.dsc");
    sh.write_file(work.join("prepare"), PREPARE.replace("DSC", &dsc))?;
    sh.write_file(work.join("make"), MAKE.replace("DSC", &dsc))?;
    inside(sh, &clean, &[], "/build/prepare")?;
    inside(sh, &clean, &["--net"], "/build/make").context("failed to build without a network")?;

    let out = root.join("target/dist").join(suite);
    sh.remove_path(&out)?;
    sh.create_dir(&out)?;
    let mut debs = Vec::new();
    for path in sh.read_dir(&work)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("gfxpack_") {
            sh.copy_file(&path, &out)?;
            debs.extend(name.ends_with(".deb").then(|| out.join(name)));
        }
    }
    let source = out.join(&dsc);
    // hipcc finds its own path in /proc.
    let test = format!("{MOUNTS} && exec autopkgtest \"$@\" -- chroot \"$0\"");
    let packages = &debs;
    cmd!(sh, "unshare --mount --pid --fork -- sh -c {test} {clean} {packages...} {source}")
        .run()
        .context("failed to use the installed package")?;
    sh.remove_path(&stage)?;
    debs.iter().for_each(|path| print(&format!("wrote {}", path.display())));
    Ok(())
}

/// Installs what the source package needs, with a network.
const PREPARE: &str = "\
set -eu
cd /build
apt-get update
apt-get build-dep --yes --no-install-recommends ./DSC
";

/// Builds it without a network, and checks all packages with the suite's own lintian.
const MAKE: &str = "\
set -eu
cd /build
dpkg-source --extract DSC tree
cd tree
dpkg-buildpackage --no-sign
lintian --allow-root --fail-on error,warning ../*.changes
";

/// File systems that programs in the root expect.
const MOUNTS: &str = "mount --types proc proc \"$0/proc\" && mount --rbind /dev \"$0/dev\"";

/// Writes the Debian source package of a source tarball into `work`.
fn source_package(sh: &Shell, tarball: &Path, work: &Path) -> anyhow::Result<()> {
    let original = work.join(format!("gfxpack_{VERSION}.orig.tar.xz"));
    sh.copy_file(tarball, &original)?;
    let tree = work.join("source");
    sh.create_dir(&tree)?;
    cmd!(sh, "tar --extract --file {original} --strip-components=1 --directory {tree}").run()?;
    let recipe = tree.join("packaging/debian");
    cmd!(sh, "cp --recursive {recipe} {tree}").run()?;
    let _in_work = sh.push_dir(work);
    cmd!(sh, "dpkg-source --build source").run()?;
    sh.remove_path(&tree)?;
    Ok(())
}

/// Runs a script in the root, in new namespaces.
fn inside(sh: &Shell, clean: &Path, spaces: &[&str], script: &str) -> anyhow::Result<()> {
    let enter = format!(
        "{MOUNTS} && exec chroot \"$0\" env --ignore-environment HOME=/nonexistent \
         LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh \"$1\""
    );
    cmd!(sh, "unshare --mount --pid --fork {spaces...} -- sh -c {enter} {clean} {script}").run()?;
    Ok(())
}
