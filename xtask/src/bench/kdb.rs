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
use super::measure::{Way, cores, rounds};
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
    /// The kdb whose objects are used [default: the built-in kernels for gfx906]
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
            "Objects of the built-in kernels, each made another one by its last bytes; medians \
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
        let [assemble, script, kdb, out_word] = paths.each_ref().map(String::as_str);
        let count = rows.to_string();
        let ours =
            |name: &str, mode| Way::new(name, &root(), &[assemble, kdb, &count, out_word, mode]);
        let plain = |mode| {
            let arguments = ["python3", script, kdb, &count, out_word, mode];
            Way::new("Python, row by row", &root(), &arguments)
        };
        let mut ways = [
            ours("the codec alone, one core", "codec"),
            plain("bz2"),
            ours("gfxpack, bz2", "bz2"),
            ours("writing the bytes alone", "disk"),
            plain("raw"),
            ours("gfxpack, raw", "raw"),
        ];
        rounds(sh, &mut ways, 0, self.rounds)?;
        fs::remove_file(&out).ok();
        let table = |title: &str, ways: &[Way]| -> anyhow::Result<Table> {
            Ok(Table {
                title: format!("{rows} objects, {title}"),
                columns: vec!["written", "speed", "peak memory"],
                rows: ways.iter().map(row).collect::<anyhow::Result<_>>()?,
            })
        };
        Ok([table("bz2", &ways[..3])?, table("raw", &ways[3..])?])
    }
}

fn row(way: &Way) -> anyhow::Result<Row> {
    let (mut seconds, mut megabytes) = (Vec::new(), 0.0);
    for sample in &way.samples {
        let measured: Value = serde_json::from_str(&sample.output)
            .with_context(|| format!("failed to read what `{}` measured", way.words[0]))?;
        let number = |name: &str| measured[name].as_f64().context("failed to find a number");
        seconds.push(number("seconds")?);
        megabytes = number("bytes")? / 1e6;
    }
    let speed = megabytes / median(&seconds);
    let peak = way.peak_megabytes();
    let more = vec![format!("{megabytes:.0} MB"), format!("{speed:.0} MB/s"), format!("{peak} MB")];
    Ok(Row { seconds, ..way.row(more) })
}
