//! `cargo xtask bench read`: verifying kdbs and looking kernels up, compared with
//! plain scripts.

use std::fs;
use std::path::Path;

use clap::Args;
use xshell::{Shell, cmd};

use super::built;
use super::measure::{Benchmark, USUAL_COLUMNS, cores, rounds};
use super::table::Table;
use crate::root::root;

/// Verify kdbs, and look kernels up
#[derive(Debug, Args)]
pub(crate) struct Read {
    /// Rows of the kdb that is read
    #[arg(long, default_value_t = 10_000)]
    rows: u32,
    /// How often each way is measured, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Leave docs/benchmarks.md as it is
    #[arg(long)]
    print: bool,
}

/// Only decodes and hashes each row.
const VERIFY: &str = r#"
import bz2, hashlib, sqlite3, sys
for blob, md5, size in sqlite3.connect(sys.argv[1]).execute(
    "SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db"
):
    assert hashlib.md5(bz2.decompress(blob) if size else blob).hexdigest() == md5
"#;

/// Counts the rows of each kernel.
const COUNT: &str = r#"
import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute(
    "SELECT kernel_name, count(*) FROM kern_db GROUP BY kernel_name"
).fetchall())
"#;

impl Read {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let gfxpack = built::gfxpack(sh)?;
        let (dir, rows) = (built::dir().join("read"), self.rows);
        sh.create_dir(&dir)?;
        let mut tables = String::new();
        for form in ["bz2", "raw"] {
            let kdb = dir.join(format!("{form}.kdb"));
            built::large_kdb(sh, rows.into(), &kdb, form)?;
            let size = fs::metadata(&kdb)?.len() / u64::from(rows.max(1));
            let title = format!("`kdb verify`, {rows} rows of {size} bytes, {form}");
            tables += &self.table(sh, title, "verify", VERIFY, &gfxpack, &kdb)?;
            if form == "bz2" {
                let title = format!("`kdb info`, {rows} rows");
                tables += &self.table(sh, title, "info", COUNT, &gfxpack, &kdb)?;
            }
        }
        sh.remove_path(&dir)?;
        let lookups = cmd!(sh, "cargo bench --package gfxpack-runtime --bench lookup -- --table");
        let lookups = lookups.read()?;
        let lookups = lookups.lines().filter(|line| line.starts_with('|')).collect::<Vec<_>>();
        let cores = cores()?;
        let text = format!(
            "## Lookups\n\nOne lookup among 10,000 kernels of 40 kB, in microseconds. MIOpen opens \
             the user's and the installed kdb for each. With one thread CPU time, with two the \
             time on the clock until each has done its half; {cores} cores.\n\n\
             | lookup | compared with | gfxpack | the other | times as fast | gfxpack, 2 threads | the other | times as fast |\n\
             | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n{}\n\n\
             ## Reading kdbs\n\nThe commands, and scripts in Python: one that decodes and hashes \
             each row and checks nothing else, and one that counts the rows of each kernel name. \
             Medians of {} rounds in turn on {cores} cores.\n{tables}",
            lookups.join("\n"),
            self.rounds
        );
        built::publish((!self.print).then_some("read"), &text)
    }

    fn table(
        &self,
        sh: &Shell,
        title: String,
        command: &str,
        script: &str,
        gfxpack: &Path,
        kdb: &Path,
    ) -> anyhow::Result<String> {
        let (gfxpack, kdb) = (gfxpack.display().to_string(), kdb.display().to_string());
        let mut benchmarks = [
            Benchmark::new("Python", &root(), &["python3", "-c", script, &kdb]),
            Benchmark::new("gfxpack", &root(), &[&gfxpack, "kdb", command, &kdb]),
        ];
        rounds(sh, &mut benchmarks, 0, self.rounds)?;
        let rows = benchmarks.iter().map(Benchmark::usual_row).collect();
        Ok(format!("\n{}", Table { title, columns: USUAL_COLUMNS.into(), rows }.markdown()))
    }
}
