//! `cargo xtask bench kdb`: assembling kdbs, compared with a plain script, the
//! codec on one core, and writing the same bytes to the disk.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::Value;
use xshell::Shell;

use super::built;
use super::measure::{Benchmark, cores, rounds};
use super::table::{Row, Table, median};
use crate::root::root;

/// Assemble kdbs of many objects
#[derive(Debug, Args)]
pub(crate) struct Kdb {
    /// Objects of each kdb
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    rows: Vec<u32>,
    /// How often each way is measured, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// The kdb whose objects are used [default: the example kernels for gfx906]
    #[arg(long, value_name = "KDB")]
    kdb: Option<PathBuf>,
}

impl Kdb {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let kdb = match &self.kdb {
            Some(kdb) => kdb.clone(),
            None => built::kdb(sh)?,
        };
        let assemble = built::example(sh, "gfxpack-kdb", "assemble")?;
        let mut text = format!(
            "Small objects, each made another one by its last bytes; medians \
             of {} rounds in turn on {} cores. Assembling is hashing, compressing, inserting \
             and getting all of it onto the disk; `kdb verify` is not part of it.\n",
            self.rounds,
            cores()?
        );
        for &rows in &self.rows {
            for table in self.measure(sh, &assemble, &kdb, rows)? {
                write!(text, "\n{}", table.markdown())?;
            }
        }
        built::publish(Some("kdb"), &text)
    }

    /// The programs print the time that counts, without that for making the objects.
    fn measure(
        &self,
        sh: &Shell,
        assemble: &Path,
        kdb: &Path,
        rows: u32,
    ) -> anyhow::Result<[Table; 2]> {
        let out = built::dir().join("assembled");
        let script = root().join("xtask/src/bench/plain.py");
        let paths = [assemble, &script, kdb, &out].map(|path| path.display().to_string());
        let [assemble, script, kdb, out_path] = paths.each_ref().map(String::as_str);
        let count = rows.to_string();
        let ours = |name: &str, mode| {
            Benchmark::new(name, &root(), &[assemble, kdb, &count, out_path, mode])
        };
        let plain = |mode| {
            let arguments = ["python3", script, kdb, &count, out_path, mode];
            Benchmark::new("Python, row by row", &root(), &arguments)
        };
        let mut benchmarks = [
            ours("the codec alone, one core", "codec"),
            plain("bz2"),
            ours("gfxpack, bz2", "bz2"),
            ours("writing the bytes alone", "disk"),
            plain("raw"),
            ours("gfxpack, raw", "raw"),
        ];
        rounds(sh, &mut benchmarks, 0, self.rounds)?;
        fs::remove_file(&out).ok();
        let table = |title: &str, benchmarks: &[Benchmark]| -> anyhow::Result<Table> {
            Ok(Table {
                title: format!("{rows} objects, {title}"),
                columns: vec!["written", "speed", "peak memory"],
                rows: benchmarks.iter().map(row).collect::<anyhow::Result<_>>()?,
            })
        };
        Ok([table("bz2", &benchmarks[..3])?, table("raw", &benchmarks[3..])?])
    }
}

fn row(benchmark: &Benchmark) -> anyhow::Result<Row> {
    let (mut seconds, mut megabytes) = (Vec::new(), 0.0);
    for sample in &benchmark.samples {
        let measured: Value = serde_json::from_str(&sample.output)
            .with_context(|| format!("failed to read what `{}` measured", benchmark.args[0]))?;
        let number = |name: &str| measured[name].as_f64().context("failed to find a number");
        seconds.push(number("seconds")?);
        megabytes = number("bytes")? / 1e6;
    }
    let speed = megabytes / median(&seconds);
    let peak = benchmark.peak_megabytes();
    let more = vec![format!("{megabytes:.0} MB"), format!("{speed:.0} MB/s"), format!("{peak} MB")];
    Ok(Row { seconds, ..benchmark.row(more) })
}
