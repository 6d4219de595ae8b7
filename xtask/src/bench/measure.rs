//! Runs and times commands, several commands that do the same in turn.

use std::fs;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use wait4::Wait4;
use xshell::{Shell, cmd};

use super::table::{Row, median};
use crate::print::print;

/// The measurements of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    pub(super) seconds: f64,
    /// CPU time of all processes that it started, in seconds.
    pub(super) cpu: f64,
    /// Peak memory of the largest process, in bytes.
    pub(super) peak: u64,
    /// The output.
    pub(super) output: String,
}

/// Runs a command, which must succeed.
pub(super) fn run(command: impl Into<Command>) -> anyhow::Result<Sample> {
    let (sample, error) = finish(command.into())?;
    ensure!(error.is_none(), "{}", error.unwrap_or_default());
    Ok(sample)
}

/// Runs a command that may fail, since some of its work may.
pub(super) fn run_to_any_end(command: impl Into<Command>) -> anyhow::Result<Sample> {
    Ok(finish(command.into())?.0)
}

/// The measurements of a command, and why it failed, if it did.
fn finish(mut command: Command) -> anyhow::Result<(Sample, Option<String>)> {
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    let started = Instant::now();
    let used = command.spawn().context("failed to start a command")?.wait4()?;
    let seconds = started.elapsed().as_secs_f64();
    let read = |file: &mut fs::File| -> anyhow::Result<String> {
        let mut text = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let (output, messages) = (read(&mut out)?, read(&mut err)?);
    let failed = !used.status.success();
    let error = failed.then(|| format!("failed to run {command:?}: {messages}{output}"));
    let cpu = (used.rusage.utime + used.rusage.stime).as_secs_f64();
    Ok((Sample { seconds, cpu, peak: used.rusage.maxrss, output }, error))
}

/// A command that is measured.
#[derive(Debug)]
pub(super) struct Benchmark {
    pub(super) name: String,
    /// Program and arguments.
    pub(super) args: Vec<String>,
    /// The working directory.
    pub(super) dir: PathBuf,
    pub(super) samples: Vec<Sample>,
}

impl Benchmark {
    pub(super) fn new(name: impl Into<String>, dir: &Path, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { name: name.into(), args, dir: dir.to_owned(), samples: Vec::new() }
    }

    pub(super) fn measure(&mut self, sh: &Shell) -> anyhow::Result<()> {
        let (program, args) = self.args.split_first().context("a program")?;
        let _dir = sh.push_dir(&self.dir);
        let sample = run(cmd!(sh, "{program} {args...}"))?;
        print(&format!("{}: {:.2} s, CPU {:.2} s", self.name, sample.seconds, sample.cpu));
        self.samples.push(sample);
        Ok(())
    }

    /// A row of a table, with additional columns.
    pub(super) fn row(&self, more: Vec<String>) -> Row {
        let seconds = self.samples.iter().map(|sample| sample.seconds).collect();
        Row { name: self.name.clone(), seconds, more }
    }

    /// A row with CPU time and memory.
    pub(super) fn usual_row(&self) -> Row {
        self.row(vec![format!("{:.2} s", self.cpu()), format!("{} MB", self.peak_megabytes())])
    }

    pub(super) fn cpu(&self) -> f64 {
        median(&self.samples.iter().map(|sample| sample.cpu).collect::<Vec<_>>())
    }

    pub(super) fn seconds(&self) -> f64 {
        median(&self.samples.iter().map(|sample| sample.seconds).collect::<Vec<_>>())
    }

    pub(super) fn peak_megabytes(&self) -> u64 {
        self.samples.iter().map(|sample| sample.peak).max().unwrap_or_default() / 1_000_000
    }
}

/// The columns of [`Benchmark::usual_row`].
pub(super) const USUAL_COLUMNS: [&str; 2] = ["CPU time", "peak memory"];

/// Runs each benchmark `rounds` times in turn, after some rounds that do not count.
pub(super) fn rounds(
    sh: &Shell,
    benchmarks: &mut [Benchmark],
    warm_up: u32,
    rounds: u32,
) -> anyhow::Result<()> {
    for round in 0..warm_up + rounds {
        if round == warm_up {
            benchmarks.iter_mut().for_each(|benchmark| benchmark.samples.clear());
        }
        benchmarks.iter_mut().try_for_each(|benchmark| benchmark.measure(sh))?;
    }
    Ok(())
}

/// The number of processors.
pub(super) fn cores() -> anyhow::Result<usize> {
    Ok(std::thread::available_parallelism()?.get())
}
