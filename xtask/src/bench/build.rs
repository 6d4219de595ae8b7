//! `cargo xtask bench build`: compiling, compared with hipcc started by xargs and
//! make on the same list, and with gfxpack without each shortcut.

mod same;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Args;
use serde_json::{Value, json};
use xshell::{Shell, cmd};

use self::same::Same;
use super::built;
use super::measure::{self, Sample, cores, run, run_to_any_end};
use super::table::{Table, median};
use crate::print::print;
use crate::root::root;

/// Compile the example kernels, or any others, in every way
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// How often each way is measured, in turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// GPU to build for
    #[arg(long, default_value = "gfx906_60")]
    target: String,
    /// Another manifest than the example
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Kernel keys instead of a manifest
    #[arg(long, value_name = "FILE", requires = "source_dir", conflicts_with = "manifest")]
    keys: Option<PathBuf>,
    /// Where the sources of keys are
    #[arg(long, value_name = "DIR")]
    source_dir: Vec<PathBuf>,
    /// Section of docs/benchmarks.md to write; none is written without
    #[arg(long, value_name = "NAME")]
    section: Option<String>,
    /// Only the ways of this name, or else whose names contain this;
    /// repeatable, or with commas
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    only: Vec<String>,
}

/// A measured way to get the objects, or to find out that they exist.
struct BuildBenchmark {
    benchmark: measure::Benchmark,
    run: Run,
}

enum Run {
    /// The list divided by language, with a shell for each line.
    Xargs,
    Make,
    /// gfxpack with an empty cache and these options.
    Cold(&'static [&'static str]),
    /// gfxpack again, with everything in its cache.
    Warm,
    /// Only planning.
    Plan,
}

const LANGUAGES: [&str; 3] = ["hip", "opencl-c", "assembly"];

/// The paths, and what is built.
struct Workspace {
    dir: PathBuf,
    gfxpack: PathBuf,
    inputs: Vec<String>,
    cores: String,
}

impl Build {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let workspace = self.workspace(sh)?;
        let jobs = workspace.stage(sh)?;
        let mut benchmarks = benchmarks();
        benchmarks.retain(|benchmark| {
            self.only.is_empty() || self.only.iter().any(|text| named(benchmark, text))
        });
        ensure!(!benchmarks.is_empty(), "--only names no measurement");
        for round in 1..=self.rounds {
            for BuildBenchmark { benchmark, run } in &mut benchmarks {
                let sample = workspace.measure(sh, run)?;
                let Sample { seconds, cpu, .. } = sample;
                print(&format!(
                    "round {round}, {}: {seconds:.2} s, CPU {cpu:.2} s",
                    benchmark.name
                ));
                benchmark.samples.push(sample);
            }
        }
        let same = workspace.compare(sh)?;
        let text = self.text(&benchmarks, jobs, &workspace.cores, same);
        built::publish(self.section.as_deref(), &text)
    }

    fn workspace(&self, sh: &Shell) -> anyhow::Result<Workspace> {
        let gfxpack = built::gfxpack(sh)?;
        let mut inputs = vec!["--target".to_owned(), self.target.clone()];
        let mut add = |option: &str, path: &Path| {
            inputs.extend([option.to_owned(), path.display().to_string()]);
        };
        match (&self.keys, &self.manifest) {
            (Some(keys), _) => {
                add("--keys", keys);
                self.source_dir.iter().for_each(|dir| add("--source-dir", dir));
            }
            (None, Some(manifest)) => add("--manifest", manifest),
            (None, None) => add("--manifest", &root().join("packaging/examples/kernels.toml")),
        }
        let dir = built::dir().join("build");
        let cores = cores()?.to_string();
        Ok(Workspace { dir, gfxpack, inputs, cores })
    }

    fn text(
        &self,
        benchmarks: &[BuildBenchmark],
        jobs: usize,
        cores: &str,
        same: Option<Same>,
    ) -> String {
        let rows = benchmarks.iter().map(|BuildBenchmark { benchmark, .. }| {
            let (cpu, first) = (benchmark.cpu(), benchmarks[0].benchmark.cpu());
            benchmark.row(vec![format!("{cpu:.2}"), format!("{:.2}", first / cpu)])
        });
        let table = Table {
            title: format!("{jobs} objects for {}", self.target),
            columns: vec!["CPU seconds", "times less CPU"],
            rows: rows.collect(),
        };
        let mut text = format!(
            "Medians of {} rounds in turn on {cores} cores; seconds are on the clock, CPU seconds \
             those of all processes together.\n\n{}",
            self.rounds,
            table.markdown()
        );
        if let Some(Same { objects, at_times }) = same {
            text.push_str(&format!(
                "\nAll {objects} different objects that hipcc and clang made are, byte for byte, \
                 those in gfxpack's kdb.\n"
            ));
            if at_times > 0 {
                text.push_str(&format!(
                    "Of {at_times} of them, the very same command makes now one object, now \
                     another; what is in the kdb came when it was run again.\n"
                ));
            }
        }
        text.push_str(&by_language(benchmarks));
        text.push_str(&profile(benchmarks));
        text
    }
}

/// Whether a benchmark has this name. `gfxpack` is one of its own and also part of
/// other names.
fn named(benchmark: &BuildBenchmark, text: &str) -> bool {
    if benchmarks().iter().any(|one| one.benchmark.name == text) {
        benchmark.benchmark.name == text
    } else {
        benchmark.benchmark.name.contains(text)
    }
}

fn benchmarks() -> Vec<BuildBenchmark> {
    let benchmark = |name: &str, run| BuildBenchmark {
        benchmark: measure::Benchmark::new(name, Path::new("."), &[]),
        run,
    };
    vec![
        benchmark("xargs, hipcc and clang", Run::Xargs),
        benchmark("make, hipcc and clang", Run::Make),
        benchmark("gfxpack, by hipcc and clang", Run::Cold(&["--via", "hipcc"])),
        benchmark("gfxpack, direct starts alone", Run::Cold(&["--via", "direct"])),
        benchmark("gfxpack without the fork server", Run::Cold(&["--no-shortcut", "fork-server"])),
        benchmark(
            "gfxpack without precompiled headers",
            Run::Cold(&["--no-shortcut", "precompiled-header"]),
        ),
        benchmark("gfxpack", Run::Cold(&[])),
        benchmark("gfxpack, all in the cache", Run::Warm),
        benchmark("gfxpack, planning only", Run::Plan),
    ]
}

/// CPU seconds in messages of these types, summed by the value of `field`.
fn cpu_by(sample: &Sample, types: &[&str], field: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for message in sample.output.lines().filter_map(|line| line.parse::<Value>().ok()) {
        let field_text = |name: &str| message[name].as_str().unwrap_or_default();
        if types.contains(&field_text("type")) {
            let cpu = message["cpu_milliseconds"].as_f64().unwrap_or_default() / 1000.0;
            *sums.entry(field_text(field).to_owned()).or_default() += cpu;
        }
    }
    sums
}

/// CPU seconds by language.
fn languages(sample: &Sample) -> BTreeMap<String, f64> {
    cpu_by(sample, &["job-finished", "job-failed"], "language")
}

/// Text: CPU seconds of each language's compilers.
fn by_language(benchmarks: &[BuildBenchmark]) -> String {
    let of = |name: &str, language: &str| -> Option<f64> {
        let BuildBenchmark { benchmark, .. } =
            benchmarks.iter().find(|one| one.benchmark.name == name)?;
        let all = benchmark.samples.iter().map(|sample| languages(sample).get(language).copied());
        Some(median(&all.collect::<Option<Vec<f64>>>()?))
    };
    let mut text = "\n| language | hipcc and clang | gfxpack | times less CPU |\n\
                    | --- | ---: | ---: | ---: |\n"
        .to_owned();
    for language in LANGUAGES {
        if let Some(theirs) = of("xargs, hipcc and clang", language)
            && let Some(ours) = of("gfxpack", language)
        {
            let ratio = theirs / ours;
            text.push_str(&format!("| {language} | {theirs:.2} | {ours:.2} | {ratio:.2} |\n"));
        }
    }
    text
}

/// Text: where a cold build's CPU time is spent.
fn profile(benchmarks: &[BuildBenchmark]) -> String {
    let Some(BuildBenchmark { benchmark, .. }) =
        benchmarks.iter().find(|one| one.benchmark.name == "gfxpack")
    else {
        return String::new();
    };
    let part = |of: &dyn Fn(&Sample) -> f64| {
        median(&benchmark.samples.iter().map(of).collect::<Vec<f64>>())
    };
    let whole = benchmark.cpu();
    let kernels = |one: &Sample| languages(one).values().sum::<f64>();
    let shared = |one: &Sample| cpu_by(one, &["prepared"], "what");
    let mut text =
        "\n| part of a cold build | CPU seconds | share |\n| --- | ---: | ---: |\n".to_owned();
    let mut row = |name: &str, seconds: f64| {
        text.push_str(&format!("| {name} | {seconds:.2} | {:.1} % |\n", 100.0 * seconds / whole));
    };
    for (language, name) in [("hip", "HIP"), ("opencl-c", "OpenCL C"), ("assembly", "assembly")] {
        let of = |one: &Sample| languages(one).get(language).copied().unwrap_or_default();
        row(&format!("the compiler on kernels in {name}"), part(&of));
    }
    row(
        "precompiling headers, and trying that",
        part(&|one| shared(one).get("precompiled-headers").copied().unwrap_or_default()),
    );
    row(
        "the rest: asking drivers, digests, staging, storing, assembling, verifying",
        part(&|one| one.cpu - kernels(one) - shared(one).values().sum::<f64>()),
    );
    row("above the compiler's work on kernels", part(&|one| one.cpu - kernels(one)));
    text
}

impl Workspace {
    /// Stages the sources, and returns the number of commands.
    fn stage(&self, sh: &Shell) -> anyhow::Result<usize> {
        let stage = self.dir.join("stage");
        sh.remove_path(&stage)?;
        sh.create_dir(&self.dir)?;
        let (gfxpack, inputs, cache) = (&self.gfxpack, &self.inputs, self.dir.join("plan-cache"));
        cmd!(sh, "{gfxpack} plan {inputs...} --stage {stage} --cache-dir {cache}")
            .quiet()
            .read()?;
        let commands = fs::read_to_string(stage.join("commands"))?;
        let mut lists: BTreeMap<&str, String> = BTreeMap::new();
        let mut makefile = String::from("all:");
        let mut rules = String::new();
        for line in commands.lines() {
            let list = lists.entry(language(line)).or_default();
            list.push_str(line);
            list.push('\n');
            let object = line.rsplit_once(" -o ../").map_or("", |(_, object)| object);
            makefile.push_str(&format!(" {object}"));
            let line = line.replace('$', "$$").replace('#', "\\#");
            rules.push_str(&format!("{object}:\n\t@{line}\n"));
        }
        fs::write(stage.join("Makefile"), format!("{makefile}\n{rules}"))?;
        for (language, list) in lists {
            fs::write(stage.join(language), list)?;
        }
        Ok(commands.lines().count())
    }

    fn measure(&self, sh: &Shell, method: &Run) -> anyhow::Result<Sample> {
        let (stage, cores) = (self.dir.join("stage"), &self.cores);
        let (cache, objects) = (self.dir.join("cache"), stage.join("objects"));
        if matches!(method, Run::Xargs | Run::Make) {
            sh.remove_path(&objects)?;
            sh.create_dir(&objects)?;
        }
        match method {
            Run::Xargs => {
                let mut all = Sample::default();
                for language in LANGUAGES.iter().filter(|language| stage.join(language).is_file()) {
                    let _in_stage = sh.push_dir(&stage);
                    let xargs = "xargs -a \"$0\" -d '\\n' -n 1 -P \"$1\" sh -c";
                    let one = run_to_any_end(cmd!(sh, "sh -c {xargs} {language} {cores}"))?;
                    all.seconds += one.seconds;
                    all.cpu += one.cpu;
                    // In the form of gfxpack's messages.
                    let milliseconds = 1000.0 * one.cpu;
                    let message = json!({
                        "type": "job-finished", "language": language,
                        "cpu_milliseconds": milliseconds,
                    });
                    all.output.push_str(&format!("{message}\n"));
                }
                Ok(all)
            }
            Run::Make => {
                let _in_stage = sh.push_dir(&stage);
                run_to_any_end(cmd!(sh, "make -k -s -j {cores}"))
            }
            Run::Cold(options) => {
                sh.remove_path(&cache)?;
                self.build(sh, options)
            }
            Run::Warm => self.build(sh, &[]),
            Run::Plan => {
                let (gfxpack, inputs) = (&self.gfxpack, &self.inputs);
                run(cmd!(sh, "{gfxpack} plan {inputs...} --cache-dir {cache}"))
            }
        }
    }

    fn build(&self, sh: &Shell, options: &[&str]) -> anyhow::Result<Sample> {
        let (gfxpack, inputs, cache) = (&self.gfxpack, &self.inputs, self.dir.join("cache"));
        let out = self.dir.join("out");
        sh.remove_path(&out)?;
        run(cmd!(
            sh,
            "{gfxpack} build {inputs...} {options...} --cache-dir {cache} --out {out}
             --allow-partial --message-format json"
        ))
    }

    /// Compares the objects of xargs or make with the rows of gfxpack's kdb.
    fn compare(&self, sh: &Shell) -> anyhow::Result<Option<Same>> {
        let kdb = fs::read_dir(self.dir.join("out/kdb")).ok().and_then(|mut dir| dir.next());
        let Some(kdb) = kdb else { return Ok(None) };
        same::compare(sh, &self.dir.join("stage"), &self.gfxpack, &kdb?.path())
    }
}

/// The language of a command.
fn language(line: &str) -> &'static str {
    if line.contains(" -x cl ") {
        "opencl-c"
    } else if line.contains(" -x assembler ") {
        "assembly"
    } else {
        "hip"
    }
}
