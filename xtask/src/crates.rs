//! `cargo xtask crates`: packs the crates as they would be published, and builds
//! and tests them from the packed files alone.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use crate::print::print;
use crate::root::root;

/// Pack all crates into target/package, and build and test them from these files alone
#[derive(Debug, Args)]
pub(crate) struct Crates {
    /// Pack and unpack only
    #[arg(long)]
    pub(crate) no_test: bool,
}

impl Crates {
    /// # Errors
    /// If a crate can't be packed, or needs files that are not packed.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let _in_root = sh.push_dir(root());
        // All at once, so that crates find each other before they are published.
        cmd!(sh, "cargo package --workspace --exclude xtask --exclude gfxpack-tests")
            .args(["--no-verify", "--allow-dirty"])
            .run()?;
        let packed = root().join("target/packed");
        if packed.exists() {
            fs::remove_dir_all(&packed)?;
        }
        fs::create_dir_all(&packed)?;
        let mut patches = String::new();
        let version = env!("CARGO_PKG_VERSION");
        for entry in fs::read_dir(root().join("crates"))? {
            let recipe = fs::read_to_string(entry?.path().join("Cargo.toml"))?;
            let name = recipe.split('"').nth(1).context("a crate without a name")?.to_owned();
            let archive = root().join(format!("target/package/{name}-{version}.crate"));
            ensure!(archive.is_file(), "`{}` was not made", archive.display());
            cmd!(sh, "tar --extract --gzip --directory {packed} --file {archive}").run()?;
            for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
                let file = packed.join(format!("{name}-{version}")).join(file);
                ensure!(file.is_file(), "`{}` is not packed", file.display());
            }
            writeln!(patches, "{name} = {{ path = \"{name}-{version}\" }}")?;
        }
        // Profiles belong to the workspace, not to crates.
        let own = fs::read_to_string(root().join("Cargo.toml"))?;
        let profiles = own.find("[profile").map_or("", |at| &own[at..]);
        let workspace = format!(
            "[workspace]\nresolver = \"3\"\nmembers = [\"gfxpack*\"]\n\n[patch.crates-io]\n\
             {patches}\n{profiles}"
        );
        fs::write(packed.join("Cargo.toml"), workspace)?;
        fs::copy(root().join("Cargo.lock"), packed.join("Cargo.lock"))?;
        print(&format!("unpacked into {}", packed.display()));
        if self.no_test {
            return Ok(());
        }
        let _in_packed = sh.push_dir(&packed);
        let target = root().join("target");
        cmd!(sh, "cargo test --workspace").env("CARGO_TARGET_DIR", target).run()?;
        Ok(())
    }
}
