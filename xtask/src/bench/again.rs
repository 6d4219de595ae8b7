//! `cargo xtask bench again`: `gfxpack dist` where nothing has changed, beside
//! ninja with as many targets that are up to date.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use xshell::Shell;

use super::built;
use super::scale::{Step, measure, write_keys};
use super::table::{Row, Table, write_section};
use crate::root::root;
use crate::say::say;

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

/// One way to do nothing.
struct Way {
    name: &'static str,
    program: PathBuf,
    words: Vec<String>,
    steps: Vec<Step>,
}

impl Again {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let gfxpack = built::gfxpack(sh)?;
        let cores = std::thread::available_parallelism()?;
        let mut text = format!(
            "## Building again\n\n`gfxpack dist` with a .deb and an .rpm, where all of that is there \
             already, and ninja with as many targets that are up to date; medians of {} rounds in \
             turn on {cores} cores. Assembly kernels of {} bytes of arguments. gfxpack compares \
             what compilers were told of files with what they would be told now, and the identity \
             of every output; `--verify-all` also reads all of them again.\n",
            self.rounds,
            arguments()
        );
        for &keys in &self.keys {
            write!(text, "\n{}", self.table(&gfxpack, keys)?.markdown())?;
        }
        say(&text);
        if !self.print {
            write_section(&root().join("docs/benchmarks.md"), "again", &text)?;
        }
        Ok(())
    }

    fn table(&self, gfxpack: &Path, keys: usize) -> anyhow::Result<Table> {
        let dir = built::dir().join(format!("again-{keys}"));
        fs::create_dir_all(dir.join("src"))?;
        write_keys(&dir, keys)?;
        fs::write(dir.join("build.ninja"), ninja(keys))?;
        let dist = ["dist", "--keys", "keys.jsonl", "--source-dir", "src", "--target", "gfx906_60"];
        let more = ["--format", "deb,rpm", "--license", "MIT", "--copyright", "Nobody"];
        let last = ["--package-version", "1", "--maintainer", "Nobody <a@b.org>", "--out", "out"];
        let dist = [&dist[..], &more, &last].concat();
        let way = |name, program: &Path, words: &[&str]| Way {
            name,
            program: program.to_owned(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            steps: Vec::new(),
        };
        let mut ways = [
            way("ninja", Path::new("ninja"), &["--quiet"]),
            way("gfxpack dist", gfxpack, &dist),
            way("gfxpack dist --verify-all", gfxpack, &[&dist[..], &["--verify-all"]].concat()),
        ];
        // The first round makes all there is, the second notes what has rested by then.
        for round in 0..self.rounds + 2 {
            for way in &mut ways {
                let words: Vec<&str> = way.words.iter().map(String::as_str).collect();
                let step = measure(way.name, &way.program, &words, &dir)?;
                say(&format!("{keys} keys, {}: {:.2} s", way.name, step.seconds));
                if round > 1 {
                    way.steps.push(step);
                }
            }
        }
        fs::remove_dir_all(&dir).context("failed to remove what was built")?;
        let row = |way: &Way| {
            let last = way.steps.last().expect("at least one round");
            Row {
                name: way.name.to_owned(),
                seconds: way.steps.iter().map(|step| step.seconds).collect(),
                more: vec![format!("{:.2} s", last.cpu), format!("{} MB", last.peak / 1_000_000)],
            }
        };
        Ok(Table {
            title: format!("{keys} keys"),
            columns: vec!["CPU time", "peak memory"],
            rows: ways.iter().map(row).collect(),
        })
    }
}

/// Bytes of one key's arguments, roughly.
fn arguments() -> usize {
    super::scale::SYMBOLS * " -Wa,-defsym,symbol_00=16".len()
}

/// So many targets of a few sources.
fn ninja(targets: usize) -> String {
    let mut text = "rule touch\n  command = touch $out\n".to_owned();
    for target in 0..targets {
        let source = target % super::scale::SOURCES;
        writeln!(text, "build ninja/{target}.o: touch src/conv{source:02}.s").expect("a String");
    }
    text
}
