//! `cargo xtask bench package`: `gfxpack package` with a large kdb, compared with
//! dpkg-deb, rpmbuild, and tar with zstd or pigz at the same settings.

mod packers;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use xshell::Shell;

use self::packers::{Packer, Setting};
use super::built;
use super::measure::cores;
use super::table::Table;
use crate::files::files;
use crate::print::print;
use crate::setup::{self, Need, need};

/// Package a large kdb of real code objects
#[derive(Debug, Args)]
pub(crate) struct Package {
    /// Bytes of the kdb, in millions
    #[arg(long, default_value_t = 700)]
    megabytes: u64,
    /// How often each way is measured, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// The kdb to package, stored raw [default: one made of the example kernels]
    #[arg(long, value_name = "KDB")]
    kdb: Option<PathBuf>,
    /// Only tables whose titles contain this, such as "zstd" or ".rpm"; repeatable
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Leave docs/benchmarks.md as it is
    #[arg(long)]
    print: bool,
    /// Install what is missing from the system's packages, saying first what and why
    #[arg(long)]
    setup: bool,
}

const NEEDS: &[Need] = &[
    need("dpkg-deb", "pack beside gfxpack", "dpkg", "dpkg"),
    need("rpmbuild", "pack beside gfxpack", "rpm", "rpm-build"),
    need("zstd", "pack beside gfxpack", "zstd", "zstd"),
    need("pigz", "pack beside gfxpack", "pigz", "pigz"),
    need("sqlite3", "check the kdb as gfxpack does", "sqlite3", "sqlite"),
];

const SETTINGS: [Setting; 5] = [
    Setting { title: ".deb, xz 1", format: "deb", codec: "xz", level: 1 },
    Setting { title: ".deb, zstd 3", format: "deb", codec: "zst", level: 3 },
    Setting { title: ".rpm, zstd 3", format: "rpm", codec: "zst", level: 3 },
    Setting { title: ".tar.zst 3", format: "tar.zst", codec: "", level: 3 },
    Setting { title: ".tar.gz 6", format: "tar.gz", codec: "", level: 6 },
];

impl Package {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        setup::ensure(sh, NEEDS, self.setup)?;
        let gfxpack = built::gfxpack(sh)?;
        let dir = built::dir().join("package");
        fs::create_dir_all(&dir)?;
        let kdb = self.kdb(sh, &dir)?;
        // Other packagers make hard links to it, which changes the stat data by which
        // gfxpack knows that it is unchanged.
        let copy = dir.join("copy.kdb");
        fs::copy(&kdb, &copy)?;
        let mut tables = Vec::new();
        for setting in SETTINGS.iter().filter(|setting| self.is_wanted(setting.title)) {
            print(setting.title);
            let mut packers = packers::all(setting, &gfxpack, &dir, (&kdb, &copy))?;
            // The first round verifies the kdb, whose result later rounds reuse, and fills the
            // system's cache.
            for round in 0..=self.rounds {
                for packer in &mut packers {
                    packer.benchmark.measure(sh)?;
                    packer.size = newest(&packer.benchmark.dir.join("out"), packer.ending)?;
                    if round == 0 {
                        packer.benchmark.samples.clear();
                    }
                }
            }
            tables.push((slowness(&packers), table(setting.title.to_owned(), &packers)));
            packers.iter().try_for_each(|packer| sh.remove_path(&packer.benchmark.dir))?;
        }
        // The slowest in comparison with its rivals is first.
        tables.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let tables = tables.iter().map(|(_, table)| table.markdown());
        let text = format!(
            "{INTRODUCTION}\n\n{}\nA kdb of {} MB; medians of {} rounds in turn on {} cores.\n",
            tables.collect::<Vec<_>>().join("\n"),
            fs::metadata(kdb)?.len() / 1_000_000,
            self.rounds,
            cores()?
        );
        built::publish((!self.print).then_some("package"), &text)
    }

    fn is_wanted(&self, title: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| title.contains(only))
    }

    /// A raw kdb of the example kernels' objects, each of them changed.
    fn kdb(&self, sh: &Shell, dir: &Path) -> anyhow::Result<PathBuf> {
        if let Some(given) = &self.kdb {
            return fs::canonicalize(given).context("failed to find the kdb");
        }
        let dir = dir.join(format!("kdb-{}", self.megabytes));
        let path = dir.join("gfx906_60.kdb");
        if path.is_file() {
            return Ok(path);
        }
        fs::create_dir_all(&dir)?;
        // An object of the example kernels has about 3 kB.
        built::large_kdb(sh, self.megabytes * 1_000_000 / 3_600, &path, "raw")?;
        Ok(path)
    }
}

/// The text before the tables in docs/benchmarks.md.
const INTRODUCTION: &str = "\
## Packages

`gfxpack package` from the command line to its end, as users run it. It makes sure that the kdb is \
sound, lists MD5 digests in a .deb and SHA-256 in an .rpm, writes a bill of materials with SHA-1 and \
SHA-256, and digests the package. The row `gfxpack` is of a kdb that gfxpack verified before, as it \
does with what it builds; with `--verify-all` it reads and verifies all of it again. The rows with \
checks do the same by md5sum, sha1sum, sha256sum and SQLite's integrity check. The last column says \
how many times as fast gfxpack is as them, and as the tool alone. What is slowest beside others \
stands first.

CPU time is all processes' together, memory the largest of them. dpkg-deb and gfxpack bring the \
package to the disk; the others leave it in the system's cache.";

/// How many times as long as the tool alone gfxpack takes.
fn slowness(packers: &[Packer]) -> f64 {
    let ratios = packers.iter().flat_map(|packer| packer.ratios(packers));
    ratios.fold(0.0, |slowest, ratio| f64::max(slowest, 1.0 / ratio))
}

fn table(title: String, packers: &[Packer]) -> Table {
    let row = |packer: &Packer| {
        let ratios = packer.ratios(packers);
        let ratios = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>();
        packer.benchmark.row(vec![
            format!("{:.1} s", packer.benchmark.cpu()),
            format!("{} MB", packer.benchmark.peak_megabytes()),
            format!("{:.1} MB", packer.size as f64 / 1e6),
            ratios.join(", "),
        ])
    };
    let columns = vec!["CPU time", "peak memory", "package", "beside checks and tool, tool alone"];
    Table { title, columns, rows: packers.iter().map(row).collect() }
}

/// Removes the package that was written, and returns its size.
fn newest(dir: &Path, ending: &str) -> anyhow::Result<u64> {
    let is_package = |path: &PathBuf| path.extension().is_some_and(|found| found == ending);
    let package = files(dir)?.into_iter().find(is_package);
    let package =
        package.with_context(|| format!("failed to find a .{ending} in `{}`", dir.display()))?;
    let size = fs::metadata(&package)?.len();
    fs::remove_file(package)?;
    Ok(size)
}
