//! `cargo xtask bench kdb`: assembling kdbs, beside a plain script, beside the
//! codec on one core, and beside writing the same bytes to the disk.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::Value;
use xshell::{Shell, cmd};

use super::built;
use super::table::{Row, Table, median, write_section};
use crate::root::root;
use crate::say::say;

/// Assemble kdbs of many objects
#[derive(Debug, Args)]
pub(crate) struct Kdb {
    /// Objects of each kdb
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    rows: Vec<u32>,
    /// How often each way is measured, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// The kdb whose objects are used [default: the built-in kernels for gfx906]
    #[arg(long, value_name = "KDB")]
    kdb: Option<PathBuf>,
}

/// A way to get the rows onto the disk.
struct Way {
    name: &'static str,
    words: Vec<String>,
    measured: Vec<Measured>,
}

struct Measured {
    seconds: f64,
    bytes: u64,
    peak_kib: u64,
}

impl Kdb {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let kdb = match &self.kdb {
            Some(kdb) => kdb.clone(),
            None => builtin(sh)?,
        };
        cmd!(sh, "cargo build --release --package gfxpack-kdb --example assemble").run()?;
        let cores = std::thread::available_parallelism()?;
        let mut text = format!(
            "Objects of the built-in kernels, each made another one by its last bytes; medians \
             of {} rounds in turn on {cores} cores. Assembling is hashing, compressing, inserting \
             and getting all of it onto the disk; `kdb verify` is not part of it.\n",
            self.rounds
        );
        for &rows in &self.rows {
            let (bz2, raw) = self.measure(sh, &kdb, rows)?;
            for table in [bz2, raw] {
                text.push('\n');
                text.push_str(&table.markdown());
            }
        }
        say(&text);
        write_section(&root().join("docs/benchmarks.md"), "kdb", &text)
    }

    fn measure(&self, sh: &Shell, kdb: &Path, rows: u32) -> anyhow::Result<(Table, Table)> {
        let out = built::dir().join("assembled");
        let assemble = root().join("target/release/examples/assemble");
        let words = |program: &[&Path], mode: &str| -> Vec<String> {
            let mut words: Vec<String> =
                program.iter().map(|path| path.display().to_string()).collect();
            words.push(kdb.display().to_string());
            words.push(rows.to_string());
            words.push(out.display().to_string());
            words.push(mode.to_owned());
            words
        };
        let script = root().join("xtask/src/bench/plain.py");
        let python = [Path::new("python3"), script.as_path()];
        let way = |name, words| Way { name, words, measured: Vec::new() };
        let mut ways = [
            way("the codec alone, one core", words(&[&assemble], "codec")),
            way("Python, row by row", words(&python, "bz2")),
            way("gfxpack, bz2", words(&[&assemble], "bz2")),
            way("writing the bytes alone", words(&[&assemble], "disk")),
            way("Python, row by row", words(&python, "raw")),
            way("gfxpack, raw", words(&[&assemble], "raw")),
        ];
        for _ in 0..self.rounds {
            for way in &mut ways {
                let measured = measure(sh, &way.words)?;
                say(&format!("{rows} rows, {}: {:.2} s", way.name, measured.seconds));
                way.measured.push(measured);
            }
        }
        fs::remove_file(&out).ok();
        let row = |way: &Way| {
            let seconds: Vec<f64> = way.measured.iter().map(|one| one.seconds).collect();
            let last = way.measured.last().expect("at least one round");
            let speed = last.bytes as f64 / 1e6 / median(&seconds);
            let peak = way.measured.iter().map(|one| one.peak_kib).max().unwrap_or_default();
            Row {
                name: way.name.to_owned(),
                seconds,
                more: vec![
                    format!("{:.0} MB", last.bytes as f64 / 1e6),
                    format!("{speed:.0} MB/s"),
                    format!("{} MB", peak * 1024 / 1_000_000),
                ],
            }
        };
        let table = |title: &str, ways: &[Way]| Table {
            title: format!("{rows} objects, {title}"),
            columns: vec!["written", "speed", "peak memory"],
            rows: ways.iter().map(row).collect(),
        };
        Ok((table("bz2", &ways[..3]), table("raw", &ways[3..])))
    }
}

fn measure(sh: &Shell, words: &[String]) -> anyhow::Result<Measured> {
    let (program, args) = words.split_first().expect("a program");
    let said = cmd!(sh, "{program} {args...}").quiet().read()?;
    let said: Value = serde_json::from_str(&said)
        .with_context(|| format!("failed to read what `{program}` measured"))?;
    let number = |name: &str| said[name].as_f64().context("failed to find a number");
    Ok(Measured {
        seconds: number("seconds")?,
        bytes: number("bytes")? as u64,
        peak_kib: number("peak_kib")? as u64,
    })
}

/// The built-in kernels for one target, built once and kept.
pub(super) fn builtin(sh: &Shell) -> anyhow::Result<PathBuf> {
    let gfxpack = built::gfxpack(sh)?;
    let (out, cache) = (built::dir().join("builtin"), built::dir().join("cache"));
    let manifest = root().join("packaging/kernels/kernels.toml");
    cmd!(
        sh,
        "{gfxpack} build --manifest {manifest} --target gfx906_60 --out {out} --cache-dir {cache}"
    )
    .run()?;
    Ok(out.join("kdb/gfx906_60.kdb"))
}
