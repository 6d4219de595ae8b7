//! Makes the source tarball: a commit's files with every dependency vendored, so
//! that a distribution can build it without a network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::print;

/// Writes `gfxpack-<version>.tar.xz` to `target/dist` and returns its path. The bytes depend
/// only on the commit: files that are not committed are not included.
pub(super) fn write(sh: &Shell, root: &Path) -> anyhow::Result<PathBuf> {
    let _in_root = sh.push_dir(root);
    let changed = cmd!(sh, "git status --porcelain --untracked-files=no").read()?;
    if !changed.is_empty() {
        print("note: what is not committed is left out");
    }
    let name = format!("gfxpack-{}", env!("CARGO_PKG_VERSION"));
    let stage = root.join("target/source");
    let tree = stage.join(&name);
    sh.remove_path(&stage)?;
    sh.create_dir(&tree)?;
    let packed = stage.join("tree.tar");
    cmd!(sh, "git archive --format=tar --output {packed} HEAD").run()?;
    cmd!(sh, "tar --extract --file {packed} --directory {tree}").run()?;
    sh.remove_path(&packed)?;
    ensure!(tree.join("Cargo.lock").is_file(), "the commit has no Cargo.lock");

    let (manifest, vendor) = (tree.join("Cargo.toml"), tree.join("vendor"));
    cmd!(sh, "cargo vendor --locked --quiet --manifest-path {manifest} {vendor}")
        .run()
        .context("failed to vendor the dependencies")?;
    without_binaries(sh, &vendor).context("failed to leave out what was built elsewhere")?;
    let settings = tree.join(".cargo/config.toml");
    let own = if settings.is_file() { sh.read_file(&settings)? } else { String::new() };
    sh.write_file(&settings, own + VENDORED)?;

    let out = root.join("target/dist");
    sh.create_dir(&out)?;
    let tarball = out.join(format!("{name}.tar.xz"));
    let date = cmd!(sh, "git log -1 --format=@%ct").read()?;
    cmd!(sh, "tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX")
        .arg(format!("--mtime={date}"))
        .args(["--xz", "--format=gnu", "--directory"])
        .arg(&stage)
        .arg("--file")
        .arg(&tarball)
        .arg(&name)
        // One thread and a fixed level, so that the bytes are always the same.
        .env("XZ_OPT", "-6 -T1")
        .run()?;
    sh.remove_path(&stage)?;
    print(&format!("wrote {}", tarball.display()));
    Ok(tarball)
}

/// Removes .dll and .exe files, which some crates have for their own tests and lintian rejects.
/// cargo requires the files in a crate's list of checksums, so they are removed from that too.
fn without_binaries(sh: &Shell, vendor: &Path) -> anyhow::Result<()> {
    let found = cmd!(sh, "find {vendor} ( -name *.dll -o -name *.exe ) -printf %P\n").read()?;
    for inside in found.lines() {
        let mut parts = Path::new(inside).components();
        let dir = vendor.join(parts.next().context("a file without a crate")?);
        let list = dir.join(".cargo-checksum.json");
        let mut sums: Value = serde_json::from_str(&fs::read_to_string(&list)?)?;
        let name = parts.as_path().display().to_string();
        let listed = sums["files"].as_object_mut().and_then(|files| files.remove(&name));
        ensure!(listed.is_some(), "`{}` does not name `{name}`", list.display());
        fs::write(&list, sums.to_string())?;
        fs::remove_file(vendor.join(inside))?;
    }
    Ok(())
}

/// The configuration that makes cargo use the vendored crates without a network.
///
/// Source: The Cargo Book, "Source Replacement".
const VENDORED: &str = "
[source.crates-io]
replace-with = \"vendored\"

[source.vendored]
directory = \"vendor\"

[net]
offline = true
";
