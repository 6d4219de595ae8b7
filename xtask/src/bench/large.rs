//! `cargo xtask bench large`: a kdb of more than four gigabytes on its way
//! through every format and back, and the memory that takes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use super::built;
use super::table::write_section;
use crate::root::root;
use crate::say::say;

/// Package a large kdb, install it, and compare
#[derive(Debug, Args)]
pub(crate) struct Large {
    /// Size of the kdb, in units of 2^30 bytes
    #[arg(long, default_value_t = 5)]
    gibibytes: u64,
    /// What `gfxpack package` is told of memory, and held to, in megabytes
    #[arg(long, default_value_t = 512)]
    memory: u64,
}

/// Installs a package below a root.
type Install = fn(&Shell, &Path, &Path) -> anyhow::Result<()>;

const KDB: &str = "usr/share/miopen/db/gfx906_60.kdb";
const FORMATS: [(&str, Install); 3] = [(".deb", dpkg), (".rpm", rpm), (".tar.zst", tar)];

impl Large {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let gfxpack = built::gfxpack(sh)?;
        let dir = built::dir().join("large");
        sh.remove_path(&dir)?;
        sh.create_dir(&dir)?;
        let kdb = self.kdb(sh, &dir)?;
        let size = fs::metadata(&kdb)?.len();
        ensure!(size > self.gibibytes << 30, "the kdb has {size} bytes only");

        let (out, said) = (dir.join("out"), dir.join("time"));
        let memory = format!("{}MB", self.memory);
        cmd!(sh, "/usr/bin/time --format %U+%S+%M --output {said}")
            .args([&gfxpack, Path::new("package"), &kdb, Path::new("--out"), &out])
            .args(["--format", "deb,rpm,tar.zst", "--deb-compression", "zst", "--layout", "fhs"])
            .args(["--license", "MIT", "--memory", &memory])
            .run()?;
        let told = fs::read_to_string(&said)?;
        let numbers: Vec<f64> = told.trim().split('+').filter_map(|n| n.parse().ok()).collect();
        let [user, system, kib] = numbers.as_slice() else {
            anyhow::bail!("failed to read what time said: `{told}`");
        };
        let peak = *kib as u64 * 1024 / 1_000_000;
        ensure!(peak <= self.memory, "packaging took {peak} MB of memory");
        cmd!(sh, "{gfxpack} verify {out}").run()?;

        let mut sizes = Vec::new();
        for (ending, install) in FORMATS {
            let package = find(&out, ending)?;
            let packed = fs::metadata(&package)?.len();
            let system = dir.join("root");
            sh.create_dir(&system)?;
            install(sh, &package, &system)?;
            let installed = system.join(KDB);
            cmd!(sh, "cmp {kdb} {installed}").run().context("another kdb was installed")?;
            sh.remove_path(&system)?;
            sizes.push(format!("the {ending} {} MB", packed / 1_000_000));
        }
        sh.remove_path(&dir)?;
        let text = format!(
            "A kdb of {} MB of code objects, packaged in all three formats by one command with \
             `--memory {memory}` (zstd 3): {peak} MB of memory, {:.0} s of CPU time; {}. dpkg, rpm \
             and tar installed it byte for byte, and `gfxpack verify` found every row sound.\n",
            size / 1_000_000,
            user + system,
            sizes.join(", ")
        );
        say(&text);
        write_section(&root().join("docs/benchmarks.md"), "large", &text)
    }

    /// The built-in kernels' objects, each made another one, stored raw.
    fn kdb(&self, sh: &Shell, dir: &Path) -> anyhow::Result<PathBuf> {
        cmd!(sh, "cargo build --release --package gfxpack-kdb --example assemble").run()?;
        let assemble = root().join("target/release/examples/assemble");
        let (builtin, kdb) = (super::kdb::builtin(sh)?, dir.join("gfx906_60.kdb"));
        // A row takes about 6.7 kB.
        let rows = ((self.gibibytes << 30) / 6_600).to_string();
        cmd!(sh, "{assemble} {builtin} {rows} {kdb} raw").run()?;
        Ok(kdb)
    }
}

fn find(dir: &Path, ending: &str) -> anyhow::Result<PathBuf> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|path| path.ends_with(ending)) {
            return Ok(path);
        }
    }
    anyhow::bail!("failed to find a {ending} in `{}`", dir.display())
}

/// In a name space where whoever installs is root.
const AS_ROOT: [&str; 2] = ["--map-root-user", "--"];

fn dpkg(sh: &Shell, package: &Path, system: &Path) -> anyhow::Result<()> {
    for name in ["info", "updates", "triggers"] {
        sh.create_dir(system.join("var/lib/dpkg").join(name))?;
    }
    sh.write_file(system.join("var/lib/dpkg/status"), "")?;
    let log = system.join("dpkg.log");
    cmd!(sh, "unshare {AS_ROOT...} dpkg --force-not-root --root={system} --log={log}")
        .args([Path::new("--install"), package])
        .run()?;
    Ok(())
}

fn rpm(sh: &Shell, package: &Path, system: &Path) -> anyhow::Result<()> {
    cmd!(sh, "unshare {AS_ROOT...} rpm --root {system} --install --nosignature {package}").run()?;
    Ok(())
}

fn tar(sh: &Shell, package: &Path, system: &Path) -> anyhow::Result<()> {
    cmd!(sh, "tar --extract --file {package} --directory {system}").run()?;
    Ok(())
}
