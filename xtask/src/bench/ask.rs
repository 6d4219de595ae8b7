//! `cargo xtask bench ask`: asking a libMIOpen for its kernels.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::ensure;
use clap::Args;
use xshell::{Shell, cmd};

use super::built;
use super::measure::{Benchmark, cores, rounds};
use super::table::Table;
use crate::root::root;

/// Ask which kernels convolutions want
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The libMIOpen, as `gfxpack ask` takes it
    #[arg(long, default_value = "lock:packaging/miopen.lock")]
    miopen: String,
    /// The GPU to ask for
    #[arg(long, default_value = "gfx90a@104")]
    target: String,
    /// Problems, each in three directions
    #[arg(long, default_value_t = 2000)]
    problems: usize,
    /// How often asking is measured
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// More convolutions than the benchmark asks for.
const NETWORKS: &str = "resnet-50 vgg-16 densenet-121 mobilenet-v2 efficientnet-b0 inception-v3 \
    ssd yolov3 unet";
const WAYS: &str = "--batch 1,16,32,64 --type fp32,fp16,bf16 --direction training --operation conv";

impl Ask {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        cmd!(sh, "cargo build --release --package gfxpack-miopen-probe").run()?;
        let gfxpack = built::gfxpack(sh)?;
        let dir = built::dir().join("ask");
        sh.remove_path(&dir)?;
        let (list, out) = (dir.join("problems.txt"), dir.join("keys.jsonl"));
        let problems = self.problems(sh, &gfxpack)?;
        sh.write_file(&list, problems.join("\n") + "\n")?;

        let [program, list, to] = [&gfxpack, &list, &out].map(|path| path.display().to_string());
        let arguments =
            [&program, "ask", "--problems", &list, "--out", &to, "--miopen", &self.miopen];
        let arguments = [&arguments[..], &["--target", &self.target]].concat();
        let mut benchmarks = [Benchmark::new("gfxpack ask", &root(), &arguments)];
        rounds(sh, &mut benchmarks, 0, self.rounds)?;
        let keys = fs::read_to_string(&out)?.lines().count();
        let rate = |count: usize| format!("{:.1}", count as f64 / benchmarks[0].seconds());
        let more =
            vec![problems.len().to_string(), keys.to_string(), rate(problems.len()), rate(keys)];
        let table = Table {
            title: format!("Kernels of {} convolutions for {}", problems.len(), self.target),
            columns: vec!["problems", "keys", "problems a second", "keys a second"],
            rows: vec![benchmarks[0].row(more)],
        };
        let text = format!(
            "Convolutions of well-known networks in three directions, asked as a user does, on {} \
             cores; medians of {} rounds.\n\n{}",
            cores()?,
            self.rounds,
            table.markdown()
        );
        built::publish(Some("ask"), &text)
    }

    /// Problems, taken evenly from those of all networks.
    fn problems(&self, sh: &Shell, gfxpack: &Path) -> anyhow::Result<Vec<String>> {
        let arguments = || NETWORKS.split_ascii_whitespace().chain(WAYS.split_ascii_whitespace());
        let mut lines: BTreeSet<String> = BTreeSet::new();
        for layout in ["nchw", "nhwc"] {
            let output =
                cmd!(sh, "{gfxpack} problems").args(arguments()).args(["--layout", layout]);
            lines.extend(output.quiet().read()?.lines().map(str::to_owned));
        }
        let (all, wanted) = (Vec::from_iter(lines), self.problems);
        ensure!(all.len() >= wanted, "there are {} problems only", all.len());
        Ok((0..wanted).map(|number| all[number * all.len() / wanted].clone()).collect())
    }
}
