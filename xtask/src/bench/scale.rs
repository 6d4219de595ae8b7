//! `cargo xtask bench scale`: plans, shards, merges and assembles very many
//! jobs whose objects are made and not compiled; and simulates how evenly
//! shards load a cluster.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use wait4::Wait4;
use xshell::{Shell, cmd};

use super::built;
use super::table::write_section;
use crate::root::root;
use crate::say::say;

/// Plan, shard and merge stand-in jobs
#[derive(Debug, Args)]
pub(crate) struct Scale {
    /// Jobs of each plan
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000])]
    jobs: Vec<usize>,
    /// Shards of each
    #[arg(long, default_value_t = 8)]
    shards: usize,
}

/// Sources that the jobs are of.
pub(super) const SOURCES: usize = 40;
/// Symbols that each key defines, as MIOpen's assembly keys do.
pub(super) const SYMBOLS: usize = 12;
const SOURCE: &str = ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\n    s_endpgm\n.size k, .-k\n\
    .section .rodata,\"a\",@progbits\n.p2align 6\n.amdhsa_kernel k\n    .amdhsa_next_free_vgpr 4\n    \
    .amdhsa_next_free_sgpr 8\n.end_amdhsa_kernel\n";

/// What a step took.
pub(super) struct Step {
    name: String,
    pub(super) seconds: f64,
    pub(super) cpu: f64,
    /// Bytes.
    pub(super) peak: u64,
}

impl Scale {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let gfxpack = built::gfxpack(sh)?;
        cmd!(sh, "cargo build --release --package gfxpack-compile --example stand_in").run()?;
        cmd!(sh, "cargo build --release --package gfxpack-plan --example makespan").run()?;
        let cores = std::thread::available_parallelism()?;
        let mut text = format!(
            "Keys of {SYMBOLS} symbols each, in {} shards, one after the other on {cores} cores; \
             objects are stand-ins that were there before, so that nothing is compiled. A shard \
             reads the plan and all its objects; merging also writes, hashes and verifies the kdb.\n",
            self.shards
        );
        for &jobs in &self.jobs {
            let (bytes, key, steps) = self.steps(&gfxpack, jobs)?;
            write!(
                text,
                "\n### {jobs} jobs, keys of {key} bytes, a kdb of {} MB\n\n\
                 | step | seconds | CPU seconds | peak memory |\n| --- | ---: | ---: | ---: |\n",
                bytes / 1_000_000
            )?;
            for Step { name, seconds, cpu, peak } in steps {
                let peak = peak / 1_000_000;
                writeln!(text, "| {name} | {seconds:.1} | {cpu:.1} | {peak} MB |")?;
            }
        }
        let jobs = self.jobs.iter().max().copied().unwrap_or_default().to_string();
        let makespan = root().join("target/release/examples/makespan");
        let table = cmd!(sh, "{makespan} {jobs}").read()?;
        write!(
            text,
            "\n### Makespan of {jobs} jobs over the ideal, simulated\n\n\
             Costs as in MIOpen's own kernels; those that the balanced shards go by are off by a \
             factor of 1.3 for most. One node in ten is half as fast where slow nodes are named.\n\n\
             {table}\n"
        )?;
        say(&text);
        write_section(&root().join("docs/benchmarks.md"), "scale", &text)
    }

    fn steps(&self, gfxpack: &Path, jobs: usize) -> anyhow::Result<(u64, usize, Vec<Step>)> {
        let dir = built::dir().join("scale");
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(dir.join("src"))?;
        let key = write_keys(&dir, jobs)?;
        let object = object(gfxpack, &dir)?;
        let mut steps = Vec::new();
        let mut step = |name: &str, program: &Path, words: &[&str]| -> anyhow::Result<()> {
            let step = measure(name, program, words, &dir)?;
            say(&format!(
                "{jobs} jobs: {name}: {:.1} s, {} MB",
                step.seconds,
                step.peak / 1_000_000
            ));
            steps.push(step);
            Ok(())
        };
        let plan = ["plan", "--keys", "keys.jsonl", "--source-dir", "src", "--target", "gfx906_60"];
        step("plan", gfxpack, &[&plan[..], &["--out", "plan"]].concat())?;
        let stand_in = root().join("target/release/examples/stand_in");
        let object = object.to_str().context("failed to name the object")?;
        step("make stand-in objects", &stand_in, &["plan", "shards", object])?;
        let mut all = Step { name: "all shards".into(), seconds: 0.0, cpu: 0.0, peak: 0 };
        for index in 1..=self.shards {
            let shard = format!("{index}/{}", self.shards);
            let words = ["build", "--plan", "plan", "--shard", &shard, "--out", "shards"];
            let one = measure(&shard, gfxpack, &words, &dir)?;
            say(&format!("{jobs} jobs: shard {shard}: {:.1} s", one.seconds));
            (all.seconds, all.cpu) = (all.seconds + one.seconds, all.cpu + one.cpu);
            all.peak = all.peak.max(one.peak);
        }
        steps.push(all);
        let mut step = |name: &str, words: &[&str]| -> anyhow::Result<()> {
            let one = measure(name, gfxpack, words, &dir)?;
            say(&format!("{jobs} jobs: {name}: {:.1} s, {} MB", one.seconds, one.peak / 1_000_000));
            steps.push(one);
            Ok(())
        };
        step("status", &["status", "shards", "--missing"])?;
        step("merge", &["merge", "--plan", "plan", "--out", "merged", "shards"])?;
        let bytes = fs::metadata(dir.join("merged/kdb/gfx906_60.kdb"))?.len();
        // Last, since merging takes no shards of two ways to part the plan.
        step(
            "one shard of all",
            &["build", "--plan", "plan", "--shard", "1/1", "--out", "shards"],
        )?;
        fs::remove_dir_all(&dir)?;
        Ok((bytes, key, steps))
    }
}

/// Writes keys and their sources, and gives the length of the arguments.
pub(super) fn write_keys(dir: &Path, jobs: usize) -> anyhow::Result<usize> {
    for source in 0..SOURCES {
        let text = format!("// {source}\n{SOURCE}");
        fs::write(dir.join(format!("src/conv{source:02}.s")), text)?;
    }
    let mut out = BufWriter::new(fs::File::create(dir.join("keys.jsonl"))?);
    let mut length = 0;
    for job in 0..jobs {
        let mut args = String::new();
        for symbol in 0..SYMBOLS {
            // The first ones tell jobs apart, the others are as sizes are.
            let value = if symbol == 0 { job } else { 16 << (job >> symbol & 3) };
            write!(args, " -Wa,-defsym,symbol_{symbol:02}={value}")?;
        }
        args.push_str(" -mcpu=gfx906");
        length = args.len();
        writeln!(
            out,
            "{{\"kernel_name\":\"conv{:02}.s.o\",\"kernel_args\":\"{args}\"}}",
            job % SOURCES
        )?;
    }
    out.flush()?;
    Ok(length)
}

/// One real code object.
fn object(gfxpack: &Path, dir: &Path) -> anyhow::Result<PathBuf> {
    let key = "{\"kernel_name\":\"conv00.s.o\",\"kernel_args\":\" -mcpu=gfx906\"}\n";
    fs::write(dir.join("one.jsonl"), key)?;
    let inputs = ["--keys", "one.jsonl", "--source-dir", "src", "--target", "gfx906_60"];
    let build = [&["build", "--out", "one"][..], &inputs].concat();
    measure("one", gfxpack, &build, dir)?;
    let get = ["kdb", "get", "one/kdb/gfx906_60.kdb", "conv00.s.o", " -mcpu=gfx906"];
    measure("get", gfxpack, &[&get[..], &["--out", "object"]].concat(), dir)?;
    Ok(dir.join("object"))
}

pub(super) fn measure(
    name: &str,
    program: &Path,
    words: &[&str],
    dir: &Path,
) -> anyhow::Result<Step> {
    let sh = Shell::new()?;
    let mut command = Command::from(cmd!(sh, "{program} {words...}"));
    command.current_dir(dir).env("GFXPACK_CACHE_DIR", dir.join("cache"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let errors = dir.join("stderr");
    command.stderr(fs::File::create(&errors)?);
    let started = Instant::now();
    let mut child = command.spawn().context("failed to start a command")?;
    let used = child.wait4()?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(used.status.success(), "failed to run {words:?}: {}", fs::read_to_string(errors)?);
    let cpu = (used.rusage.utime + used.rusage.stime).as_secs_f64();
    Ok(Step { name: name.to_owned(), seconds, cpu, peak: used.rusage.maxrss })
}
