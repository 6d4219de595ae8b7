//! Packages the runtime library for C as .debs.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;
use xshell::{Shell, cmd};

use super::judged;

/// Makes the runtime library's two .debs. The recipe packages what the library's
/// own installer makes, since the pkg-config file contains the final directories.
pub(super) fn packages(
    sh: &Shell,
    root: &Path,
    cargo_deb: &Path,
    out: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    let manifest = root.join("Cargo.toml");
    let (target, stage) = (root.join("target"), root.join("target/gfxpack-runtime"));
    cmd!(sh, "cargo build --release --manifest-path {manifest} --target-dir {target}")
        .args(["--package", "gfxpack-runtime-c"])
        .run()?;
    let triple = cmd!(sh, "dpkg-architecture -qDEB_HOST_MULTIARCH").read()?;
    sh.remove_path(&stage)?;
    let install = root.join("crates/runtime-c/install.sh");
    let libdir = format!("/usr/lib/{triple}");
    cmd!(sh, "sh {install} --built {target}/release --destdir {stage} --prefix /usr")
        .args(["--libdir", &libdir])
        .run()?;
    symlink(stage.join(format!("usr/lib/{triple}")), stage.join("lib"))
        .context("failed to make `target/gfxpack-runtime/lib`")?;
    for variant in ["lib", "dev"] {
        let built =
            cmd!(sh, "{cargo_deb} deb --manifest-path {manifest} --package gfxpack-runtime-c")
                .args(["--no-build", "--variant", variant, "--multiarch", "same", "--output"])
                .arg(out)
                .env("CARGO_TARGET_DIR", &target)
                .read()?;
        let package = PathBuf::from(built.lines().last().context("cargo-deb names no package")?);
        if variant == "lib" {
            finish_library(sh, root, &package)?;
        }
        judged(sh, &package)?;
        made.push(package);
    }
    Ok(made)
}

/// Adds to the library's .deb what cargo-deb can't express: the version on which
/// programs depend that are linked with it, and that it is not executable.
///
/// Source: Debian Policy 4.7.0, 8.6 and 10.1; dpkg-gensymbols(1); deb-shlibs(5).
fn finish_library(sh: &Shell, root: &Path, package: &Path) -> anyhow::Result<()> {
    let unpacked = root.join("target/gfxpack-runtime/deb");
    let recipe = root.join("crates/runtime-c/debian");
    cmd!(sh, "dpkg-deb --raw-extract {package} {unpacked}").run()?;
    sh.copy_file(recipe.join("shlibs"), unpacked.join("DEBIAN"))?;
    let version = env!("CARGO_PKG_VERSION");
    // With level 4, a missing or an additional symbol version is an error.
    cmd!(sh, "dpkg-gensymbols -c4 -plibgfxpack-runtime0 -v{version} -P{unpacked}")
        .arg(format!("-I{}", recipe.join("symbols").display()))
        .arg(format!("-O{}", unpacked.join("DEBIAN/symbols").display()))
        .run()
        .context(
            "failed to list the library's symbols as crates/runtime-c/debian/symbols has them",
        )?;
    let library = "libgfxpack_runtime.so.*.*.*";
    cmd!(sh, "find {unpacked}/usr/lib -type f -name {library}")
        .args(["-exec", "chmod", "644", "{}", "+"])
        .run()?;
    cmd!(sh, "dpkg-deb --root-owner-group -Zxz --build {unpacked} {package}").quiet().run()?;
    sh.remove_path(unpacked)?;
    Ok(())
}
