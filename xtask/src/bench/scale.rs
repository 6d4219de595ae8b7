//! `cargo xtask bench scale`: plans, shards, merges and assembles very many jobs
//! with artificial objects.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::Args;
use xshell::Shell;

use super::built;
use super::keys::{SYMBOLS, write_keys};
use super::measure::{Benchmark, Sample, cores};

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

impl Scale {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let gfxpack = built::gfxpack(sh)?;
        let stand_in = built::example(sh, "gfxpack-compile", "stand_in")?;
        let mut text = format!(
            "Keys of {SYMBOLS} symbols each, in {} shards, one after the other on {} cores; \
             objects are stand-ins that were there before, so that nothing is compiled. A shard \
             reads the plan and all its objects; merging also writes, hashes and verifies the kdb.\n",
            self.shards,
            cores()?
        );
        for &jobs in &self.jobs {
            write!(text, "\n{}", self.steps(sh, [&gfxpack, &stand_in], jobs)?)?;
        }
        built::publish(Some("scale"), &text)
    }

    /// Measures each step once, and returns the table.
    fn steps(&self, sh: &Shell, programs: [&Path; 2], jobs: usize) -> anyhow::Result<String> {
        let dir = built::dir().join("scale");
        sh.remove_path(&dir)?;
        sh.create_dir(dir.join("src"))?;
        let _cache = sh.push_env("GFXPACK_CACHE_DIR", dir.join("cache"));
        let key = write_keys(&dir, jobs)?;
        let [gfxpack, stand_in] = programs.map(|program| program.display().to_string());
        let measure = |name: &str, program: &str, args: &[&str]| -> anyhow::Result<Benchmark> {
            let mut step = Benchmark::new(name, &dir, &[&[program], args].concat());
            step.measure(sh)?;
            Ok(step)
        };
        let inputs = ["--source-dir", "src", "--target", "gfx906_60"];
        // One real code object, which is the model for all others.
        fs::write(dir.join("one.jsonl"), ONE_KEY)?;
        measure(
            "one",
            &gfxpack,
            &[&["build", "--keys", "one.jsonl", "--out", "one"], &inputs[..]].concat(),
        )?;
        let get = ["kdb", "get", "one/kdb/gfx906_60.kdb", "conv00.s.o", " -mcpu=gfx906"];
        measure("get", &gfxpack, &[&get[..], &["--out", "object"]].concat())?;

        let plan = [&["plan", "--keys", "keys.jsonl", "--out", "plan"], &inputs[..]].concat();
        let mut steps = vec![
            measure("plan", &gfxpack, &plan)?,
            measure("make stand-in objects", &stand_in, &["plan", "shards", "object"])?,
        ];
        let mut all = Sample::default();
        for index in 1..=self.shards {
            let shard = format!("{index}/{}", self.shards);
            let build = ["build", "--plan", "plan", "--shard", &shard, "--out", "shards"];
            let one = measure("shard", &gfxpack, &build)?.samples.remove(0);
            (all.seconds, all.cpu) = (all.seconds + one.seconds, all.cpu + one.cpu);
            all.peak = all.peak.max(one.peak);
        }
        steps.push(Benchmark { samples: vec![all], ..Benchmark::new("all shards", &dir, &[]) });
        let merge = ["merge", "--plan", "plan", "--out", "merged", "shards"];
        steps.push(measure("merge", &gfxpack, &merge)?);
        let bytes = fs::metadata(dir.join("merged/kdb/gfx906_60.kdb"))?.len();
        // This is last, since merging does not accept shards that are divided in
        // two ways.
        let whole = ["build", "--plan", "plan", "--shard", "1/1", "--out", "shards"];
        steps.push(measure("one shard of all", &gfxpack, &whole)?);
        sh.remove_path(&dir)?;

        let mut text = format!(
            "### {jobs} jobs, keys of {key} bytes, a kdb of {} MB\n\n\
             | step | seconds | CPU seconds | peak memory |\n| --- | ---: | ---: | ---: |\n",
            bytes / 1_000_000
        );
        for step in &steps {
            let (name, peak) = (&step.name, step.peak_megabytes());
            writeln!(text, "| {name} | {:.1} | {:.1} | {peak} MB |", step.seconds(), step.cpu())?;
        }
        Ok(text)
    }
}

const ONE_KEY: &str = "{\"kernel_name\":\"conv00.s.o\",\"kernel_args\":\" -mcpu=gfx906\"}\n";
