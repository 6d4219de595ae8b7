//! `cargo xtask bench remote`: a build of which a remote execution service has
//! all objects, over one connection on this machine.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::Value;
use xshell::{Shell, cmd};

use super::built;
use super::measure::{Benchmark, Sample, cores, run};
use super::table::Table;
use crate::print::print;
use crate::root::root;

/// Fetch objects from a remote-execution service that has them all
#[derive(Debug, Args)]
pub(crate) struct Remote {
    /// Kernels
    #[arg(long, default_value_t = 1000)]
    jobs: usize,
    /// Jobs at once
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 128])]
    at_once: Vec<usize>,
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// The smallest possible kernel, since the compiler is not measured.
const SOURCE: &str = ".text\n.globl fill\n.p2align 8\n.type fill,@function\nfill:\n    s_endpgm\n\
    .size fill, .-fill\n.section .rodata,\"a\",@progbits\n.long VALUE\n";

/// A service, which is stopped when this value is dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Remote {
    /// # Errors
    /// If something can't be built or run.
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        let features = ["--features", "remote"];
        cmd!(sh, "cargo build --release --package gfxpack --bin gfxpack {features...}").run()?;
        let gfxpack = root().join("target/release/gfxpack");
        let dir = sh.create_temp_dir()?;
        let dir = dir.path();
        fs::write(dir.join("fill.s"), SOURCE)?;
        let options: Vec<String> =
            (0..self.jobs).map(|number| format!("\"-Wa,-defsym,VALUE={number}\"")).collect();
        let manifest = format!(
            "format = 1\n[library]\nname = \"b\"\nversion = \"1\"\nlicense = \"MIT\"\n\
             [[kernel]]\nsource = \"fill.s\"\n[[kernel.variant]]\noptions = [{}]\n",
            options.join(", ")
        );
        fs::write(dir.join("kernels.toml"), manifest)?;
        let (_service, address) = start(sh, dir)?;
        print(&format!("filling the service with {} objects", self.jobs));
        let Sample { seconds, .. } = build(sh, &gfxpack, dir, &address, 32, false)?;
        print(&format!("{seconds:.1} s, {:.3} s a job", seconds / self.jobs as f64));
        let benchmark =
            |at_once: &usize| Benchmark::new(format!("--remote-jobs {at_once}"), dir, &[]);
        let mut benchmarks: Vec<Benchmark> = self.at_once.iter().map(benchmark).collect();
        for _ in 0..self.rounds.max(1) {
            for (at_once, benchmark) in self.at_once.iter().zip(&mut benchmarks) {
                benchmark.samples.push(build(sh, &gfxpack, dir, &address, *at_once, true)?);
            }
        }
        let row = |benchmark: &Benchmark| {
            let rate = format!("{:.0}", self.jobs as f64 / benchmark.seconds());
            benchmark.row(vec![rate, format!("{:.1} s", benchmark.cpu())])
        };
        let table = Table {
            title: format!("{} objects that the service has", self.jobs),
            columns: vec!["jobs a second", "CPU time"],
            rows: benchmarks.iter().map(row).collect(),
        };
        let about = format!(
            "buildbox-casd on the same machine ({} cores), one connection, an empty cache of our \
             own; medians of {} rounds in turn. Seconds of the whole command, planning and the \
             kdb included; CPU time gfxpack's.",
            cores()?,
            self.rounds
        );
        let text = format!("{about}\n\n{}", table.markdown());
        built::publish(Some("remote"), &text)
    }
}

fn start(sh: &Shell, dir: &Path) -> anyhow::Result<(Service, String)> {
    let tools = root().join("target/tools/buildbox");
    ensure!(
        tools.join("buildbox-casd").is_file(),
        "buildbox-casd is missing\nhint: `cargo xtask test --setup` installs it"
    );
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let path = format!("{}:{}", tools.display(), sh.var("PATH").unwrap_or_default());
    let casd = tools.join("buildbox-casd");
    let child = Command::from(cmd!(sh, "{casd}"))
        .arg(format!("--bind=127.0.0.1:{port}"))
        .arg(format!("--buildbox-run={}", tools.join("buildbox-run").display()))
        .args(["--runner-arg=--staging-mode=copy-or-link", "--jobs=2"])
        .args(
            ["/usr", "/lib", "/lib64", "/bin", "/dev"]
                .map(|dir| format!("--runner-arg=--bind-mount={dir}:{dir}")),
        )
        .arg(dir.join("store"))
        .env("PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to start buildbox-casd")?;
    let mut service = Service(child);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(service.0.try_wait()?.is_none(), "buildbox-casd ended");
        std::thread::yield_now();
    }
    Ok((service, format!("grpc://127.0.0.1:{port}")))
}

/// Builds with an empty local cache.
fn build(
    sh: &Shell,
    gfxpack: &Path,
    dir: &Path,
    address: &str,
    at_once: usize,
    cached: bool,
) -> anyhow::Result<Sample> {
    sh.remove_path(dir.join("cache"))?;
    sh.remove_path(dir.join("out"))?;
    let _dir = sh.push_dir(dir);
    let at_once = at_once.to_string();
    let sample = run(cmd!(
        sh,
        "{gfxpack} build --manifest kernels.toml --target gfx906_60 --out out --cache-dir cache
         --message-format json --remote {address} --remote-jobs {at_once}"
    ))?;
    let (mut jobs, mut hits) = (0, 0);
    for line in sample.output.lines() {
        let message: Value = serde_json::from_str(line)?;
        if message["type"] == "job-finished" {
            jobs += 1;
            hits += usize::from(message["remote"]["cached"] == true);
        }
    }
    ensure!(!cached || hits == jobs, "{hits} of {jobs} objects came from the service's cache");
    Ok(sample)
}
