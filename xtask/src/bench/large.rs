//! `cargo xtask bench large`: a kdb of more than four gigabytes on its way
//! through every format and back, and the memory that takes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use super::built;
use super::measure::{Sample, run};
use crate::files::files;

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
        let kdb = dir.join("gfx906_60.kdb");
        // A row takes about 6.7 kB.
        built::large_kdb(sh, (self.gibibytes << 30) / 6_600, &kdb, "raw")?;
        let size = fs::metadata(&kdb)?.len();
        ensure!(size > self.gibibytes << 30, "the kdb has {size} bytes only");

        let (out, memory) = (dir.join("out"), format!("{}MB", self.memory));
        let package = cmd!(sh, "{gfxpack} package {kdb} --out {out} --layout fhs --license MIT")
            .args(["--format", "deb,rpm,tar.zst", "--deb-compression", "zst", "--memory", &memory]);
        let Sample { cpu, peak, .. } = run(package)?;
        let peak = peak / 1_000_000;
        ensure!(peak <= self.memory, "packaging took {peak} MB of memory");
        cmd!(sh, "{gfxpack} verify {out}").run()?;

        let mut sizes = Vec::new();
        for (ending, install) in FORMATS {
            let is_wanted = |path: &PathBuf| path.to_string_lossy().ends_with(ending);
            let package = files(&out)?.into_iter().find(is_wanted);
            let package = package.with_context(|| format!("failed to find a {ending}"))?;
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
             `--memory {memory}` (zstd 3): {peak} MB of memory, {cpu:.0} s of CPU time; {}. dpkg, rpm \
             and tar installed it byte for byte, and `gfxpack verify` found every row sound.\n",
            size / 1_000_000,
            sizes.join(", ")
        );
        built::publish(Some("large"), &text)
    }
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
