//! `cargo xtask bench read`: verifying kdbs and looking kernels up, beside
//! plain ways to do so.

use std::fs;
use std::path::Path;

use clap::Args;
use xshell::{Shell, cmd};

use super::built;
use super::scale::{Step, measure};
use super::table::{Row, Table, write_section};
use crate::root::root;
use crate::say::say;

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

/// Decodes and hashes each row, and checks nothing else.
const VERIFY: &str = r#"
import bz2, hashlib, sqlite3, sys
for blob, md5, size in sqlite3.connect(sys.argv[1]).execute(
    "SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db"
):
    assert hashlib.md5(bz2.decompress(blob) if size else blob).hexdigest() == md5
"#;

/// Names the kernels, each with how many rows it has.
const COUNT: &str = r#"
import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute(
    "SELECT kernel_name, count(*) FROM kern_db GROUP BY kernel_name"
).fetchall())
"#;

impl Read {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let gfxpack = built::gfxpack(sh)?;
        let builtin = super::kdb::builtin(sh)?;
        cmd!(sh, "cargo build --release --package gfxpack-kdb --example assemble").run()?;
        let assemble = root().join("target/release/examples/assemble");
        let (dir, rows) = (built::dir().join("read"), self.rows.to_string());
        sh.create_dir(&dir)?;
        let mut tables = String::new();
        for form in ["bz2", "raw"] {
            let kdb = dir.join(format!("{form}.kdb"));
            cmd!(sh, "{assemble} {builtin} {rows} {kdb} {form}").quiet().ignore_stdout().run()?;
            let size = fs::metadata(&kdb)?.len() / self.rows.max(1) as u64;
            let title = format!("`kdb verify`, {rows} rows of {size} bytes, {form}");
            tables += &self.table(title, &["kdb", "verify"], VERIFY, &gfxpack, &kdb)?;
            if form == "bz2" {
                let title = format!("`kdb info`, {rows} rows");
                tables += &self.table(title, &["kdb", "info"], COUNT, &gfxpack, &kdb)?;
            }
        }
        sh.remove_path(&dir)?;
        let lookups = cmd!(sh, "cargo bench --package gfxpack-runtime --bench lookup -- --table");
        let lookups = lookups.read()?;
        let lookups = lookups.lines().filter(|line| line.starts_with('|')).collect::<Vec<_>>();
        let cores = std::thread::available_parallelism()?;
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
        say(&text);
        if !self.print {
            write_section(&root().join("docs/benchmarks.md"), "read", &text)?;
        }
        Ok(())
    }

    fn table(
        &self,
        title: String,
        command: &[&str],
        script: &str,
        gfxpack: &Path,
        kdb: &Path,
    ) -> anyhow::Result<String> {
        let kdb = kdb.display().to_string();
        let command = [command, &[kdb.as_str()]].concat();
        let python = ["-c", script, &kdb];
        let ways: [(&str, &Path, &[&str]); 2] =
            [("Python", Path::new("python3"), &python), ("gfxpack", gfxpack, &command)];
        let mut steps: [Vec<Step>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..self.rounds {
            for ((name, program, words), steps) in ways.iter().zip(&mut steps) {
                steps.push(measure(name, program, words, &root())?);
            }
        }
        let row = |(name, steps): (&str, &Vec<Step>)| {
            let cpu: Vec<f64> = steps.iter().map(|step| step.cpu).collect();

            let peak = steps.iter().map(|step| step.peak).max().unwrap_or_default();
            Row {
                name: name.to_owned(),
                seconds: steps.iter().map(|step| step.seconds).collect(),
                more: vec![
                    format!("{:.2} s", super::table::median(&cpu)),
                    format!("{} MB", peak / 1_000_000),
                ],
            }
        };
        let rows = ways.iter().map(|way| way.0).zip(&steps).map(row).collect();
        let table = Table { title, columns: vec!["CPU time", "peak memory"], rows };
        Ok(format!("\n{}", table.markdown()))
    }
}
