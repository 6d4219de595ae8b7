//! `cargo xtask fuzz`: runs the fuzz targets with cargo-fuzz, each for some time.
//!
//! They are built with the checkout's toolchain. Sanitizers need an unstable
//! flag, which a stable compiler accepts if RUSTC_BOOTSTRAP is set. Its release
//! includes the sanitizers' run-time libraries.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use crate::cargo_tool::CargoTool;
use crate::print::print;
use crate::root::root;

/// Targets whose seeds are kdbs, which an example of the fuzz crate writes.
const MADE_OF_KDBS: [&str; 2] = ["kdb", "repair"];

const CARGO_FUZZ: CargoTool =
    CargoTool { name: "cargo-fuzz", version: "0.13.2", does: "runs the fuzz targets" };

/// Fuzz the readers of what others wrote
#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Only this target; all of them otherwise
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    time: u32,
    /// What watches memory besides Rust itself: AddressSanitizer, which sees SQLite's too, or
    /// nothing, which is about twice as fast and needs no sanitizer library
    #[arg(long, default_value = "address", value_parser = ["address", "none"])]
    sanitizer: String,
    /// Install cargo-fuzz into target/tools if it is missing
    #[arg(long)]
    setup: bool,
}

impl Fuzz {
    /// # Errors
    /// If cargo-fuzz is missing, a target can't be built, or there are findings;
    /// the other targets are run nevertheless.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        sh.change_dir(root());
        let targets = chosen(&all_targets(sh)?, self.target.as_deref())?;
        let program = CARGO_FUZZ.ensure(sh, self.setup)?;
        let mut failed = Vec::new();
        for target in &targets {
            if let Err(error) = self.one(sh, &program, target) {
                print(&format!("error: {error:#}"));
                failed.push(target.as_str());
            }
        }
        ensure!(failed.is_empty(), "failed to get through {}", failed.join(", "));
        Ok(())
    }

    fn one(&self, sh: &Shell, program: &Path, target: &str) -> anyhow::Result<()> {
        let work = root().join("target/fuzz");
        let (corpus, findings) =
            (work.join("corpus").join(target), work.join("artifacts").join(target));
        sh.create_dir(&corpus)?;
        sh.create_dir(&findings)?;
        let mut seeds = root().join("fuzz/fixtures").join(target);
        if MADE_OF_KDBS.contains(&target) {
            seeds = work.join("seeds");
            let manifest = root().join("fuzz/Cargo.toml");
            let build = work.join("seeds-build");
            cmd!(sh, "cargo run --quiet --locked --manifest-path {manifest}")
                .arg("--target-dir")
                .arg(build)
                .args(["--example", "seeds", "--"])
                .arg(&seeds)
                .run()
                .context("failed to write the seeds")?;
        }
        print(&format!("{target}: {} seconds", self.time));
        let sanitizer = &self.sanitizer;
        let time = format!("-max_total_time={}", self.time);
        let prefix = format!("-artifact_prefix={}/", findings.display());
        // An input that takes more time or memory is a finding.
        let limits = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"];
        let build = work.join("build");
        cmd!(sh, "{program} fuzz run --fuzz-dir fuzz --sanitizer {sanitizer}")
            .arg("--target-dir")
            .arg(build)
            .arg(target)
            .args([&corpus, &seeds])
            .arg("--")
            .args([&time, &prefix])
            .args(limits)
            .args(["-print_final_stats=1", "-verbosity=1"])
            .env("RUSTC_BOOTSTRAP", "1")
            .run()
            .with_context(|| {
                format!(
                    "failed to fuzz `{target}`: what it came upon is in `{}`",
                    findings.display()
                )
            })
    }
}

/// The targets in the fuzz crate's manifest.
fn all_targets(sh: &Shell) -> anyhow::Result<Vec<String>> {
    let text = sh.read_file("fuzz/Cargo.toml")?;
    let mut names = Vec::new();
    let mut section = "";
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        } else if let Some(name) = line.strip_prefix("name = ").filter(|_| section == "[[bin]]") {
            names.push(name.trim_matches('"').to_owned());
        }
    }
    Ok(names)
}

fn chosen(all: &[String], wanted: Option<&str>) -> anyhow::Result<Vec<String>> {
    match wanted {
        None => Ok(all.to_vec()),
        Some(wanted) if all.iter().any(|target| target == wanted) => Ok(vec![wanted.to_owned()]),
        Some(wanted) => {
            bail!("failed to find fuzz target `{wanted}`: there are {}", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fuzz_target_is_found_and_has_seeds() {
        let sh = Shell::new().unwrap();
        sh.change_dir(root());
        let all = all_targets(&sh).unwrap();
        let sources = sh.read_dir("fuzz/fuzz_targets").unwrap();
        let files: Vec<_> =
            sources.iter().map(|file| file.file_stem().unwrap().to_str().unwrap()).collect();
        assert_eq!(all, files, "fuzz/Cargo.toml lists what is in fuzz/fuzz_targets");
        for target in all.iter().filter(|target| !MADE_OF_KDBS.contains(&target.as_str())) {
            let seeds = sh.read_dir(format!("fuzz/fixtures/{target}")).unwrap();
            assert!(!seeds.is_empty(), "{target}");
        }
        assert_eq!(chosen(&all, Some("kdb")).unwrap(), ["kdb"]);
        assert_eq!(chosen(&all, None).unwrap(), all);
        let error = chosen(&all, Some("no-such")).unwrap_err().to_string();
        assert!(error.contains("`no-such`") && error.contains("kdb"), "{error}");
    }
    /// The fuzz targets are a separate workspace, which nothing else here builds.
    #[test]
    fn every_fuzz_target_compiles() {
        let sh = Shell::new().unwrap();
        let (manifest, target) = (root().join("fuzz/Cargo.toml"), root().join("target"));
        cmd!(sh, "cargo check --quiet --locked --all-targets --manifest-path {manifest}")
            .args(["--target-dir".as_ref(), target.as_os_str()])
            .run()
            .unwrap();
    }
}
