//! `cargo xtask bench again`: `gfxpack dist` if nothing has changed, compared
//! with ninja with as many up-to-date targets.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::Args;
use xshell::Shell;

use super::built;
use super::keys::{SOURCES, SYMBOLS, write_keys};
use super::measure::{Benchmark, USUAL_COLUMNS, cores, rounds};
use super::table::Table;

/// Build many keys, then build them again
#[derive(Debug, Args)]
pub(crate) struct Again {
    /// Keys of each run; the first run compiles them, some 400 a second on two cores
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    keys: Vec<usize>,
    /// How often each way is measured, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Leave docs/benchmarks.md as it is
    #[arg(long)]
    print: bool,
}

impl Again {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let gfxpack = built::gfxpack(sh)?;
        let mut text = format!(
            "## Building again\n\n`gfxpack dist` with a .deb and an .rpm, where all of that is there \
             already, and ninja with as many targets that are up to date; medians of {} rounds in \
             turn on {} cores. Assembly kernels of {} bytes of arguments. gfxpack compares \
             what compilers were told of files with what they would be told now, and the identity \
             of every output; `--verify-all` also reads all of them again.\n",
            self.rounds,
            cores()?,
            SYMBOLS * " -Wa,-defsym,symbol_00=16".len()
        );
        for &keys in &self.keys {
            write!(text, "\n{}", self.table(sh, &gfxpack, keys)?.markdown())?;
        }
        built::publish((!self.print).then_some("again"), &text)
    }

    fn table(&self, sh: &Shell, gfxpack: &Path, keys: usize) -> anyhow::Result<Table> {
        let dir = built::dir().join(format!("again-{keys}"));
        let _cache = sh.push_env("GFXPACK_CACHE_DIR", dir.join("cache"));
        fs::create_dir_all(dir.join("src"))?;
        write_keys(&dir, keys)?;
        fs::write(dir.join("build.ninja"), ninja(keys))?;
        let gfxpack = gfxpack.display().to_string();
        let dist = [
            [&gfxpack, "dist", "--keys", "keys.jsonl", "--source-dir", "src"],
            ["--target", "gfx906_60", "--format", "deb,rpm", "--license", "MIT"],
            ["--copyright", "Nobody", "--package-version", "1", "--out", "out"],
        ];
        let dist = [&dist.concat()[..], &["--maintainer", "Nobody <a@b.org>"]].concat();
        let mut benchmarks = [
            Benchmark::new("ninja", &dir, &["ninja", "--quiet"]),
            Benchmark::new("gfxpack dist", &dir, &dist),
            Benchmark::new(
                "gfxpack dist --verify-all",
                &dir,
                &[&dist[..], &["--verify-all"]].concat(),
            ),
        ];
        // The first round makes everything, the second records stat data of files that
        // have not changed for a while.
        rounds(sh, &mut benchmarks, 2, self.rounds)?;
        fs::remove_dir_all(&dir).context("failed to remove what was built")?;
        Ok(Table {
            title: format!("{keys} keys"),
            columns: USUAL_COLUMNS.into(),
            rows: benchmarks.iter().map(Benchmark::usual_row).collect(),
        })
    }
}

/// A build.ninja with this number of targets, made from a few sources.
fn ninja(targets: usize) -> String {
    let mut text = "rule touch\n  command = touch $out\n".to_owned();
    for target in 0..targets {
        let source = target % SOURCES;
        writeln!(text, "build ninja/{target}.o: touch src/conv{source:02}.s").expect("a String");
    }
    text
}
