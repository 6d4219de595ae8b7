//! `cargo xtask api`: compares the public interfaces of crates that programs link
//! with the files in the repository.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, ensure};
use clap::Args;
use public_api::Builder;
use xshell::{Shell, cmd};

use crate::print::print;
use crate::root::root;

/// Crates that other programs depend on.
const CRATES: [&str; 2] = ["kdb", "runtime"];

/// Compare the public interfaces of gfxpack-kdb and gfxpack-runtime with crates/*/api.txt
#[derive(Debug, Args)]
pub(crate) struct Api {
    /// Write the files anew
    #[arg(long)]
    pub(crate) write: bool,
}

impl Api {
    /// # Errors
    /// If an interface differs from its file, or rustdoc fails.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        sh.change_dir(root());
        let mut changed = Vec::new();
        for name in CRATES {
            let now = interface(sh, name)?;
            let path = root().join(format!("crates/{name}/api.txt"));
            let before = fs::read_to_string(&path).unwrap_or_default();
            if now == before {
                continue;
            }
            if self.write {
                fs::write(&path, &now)?;
                print(&format!("wrote {}", path.display()));
                continue;
            }
            let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
                (before.lines().collect(), now.lines().collect());
            old.difference(&new).for_each(|line| print(&format!("- {line}")));
            new.difference(&old).for_each(|line| print(&format!("+ {line}")));
            changed.push(format!("gfxpack-{name}"));
        }
        ensure!(
            changed.is_empty(),
            "the public interface of {} changed: if that is meant, run `cargo xtask api --write`, \
             and say in CHANGELOG.md what its users have to do",
            changed.join(" and ")
        );
        Ok(())
    }
}

/// Every public item, one per line.
fn interface(sh: &Shell, name: &str) -> anyhow::Result<String> {
    // rustdoc writes JSON only with unstable options.
    let target = root().join("target/api");
    cmd!(sh, "cargo rustdoc --quiet --package gfxpack-{name} --lib")
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", &target)
        .run()?;
    let json = target.join(format!("doc/gfxpack_{name}.json"));
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .context("failed to read what this Rust's rustdoc wrote: public-api fits one version")?;
    Ok(api.to_string())
}
