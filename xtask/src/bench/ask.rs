//! `cargo xtask bench ask`: asking a libMIOpen for its kernels, beside letting
//! the same library miss them and reading its log.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::Value;
use xshell::{Shell, cmd};

use super::built;
use super::table::{Row, Table, median, write_section};
use crate::root::root;
use crate::say::say;

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
    /// How many of them MIOpen misses the kernels of
    #[arg(long, default_value_t = 10)]
    missed: usize,
    /// How often asking is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// More convolutions than are asked for.
const NETWORKS: &str = "resnet-50 vgg-16 densenet-121 mobilenet-v2 efficientnet-b0 inception-v3 \
    ssd yolov3 unet";
const WAYS: &str = "--batch 1,16,32,64 --type fp32,fp16,bf16 --direction training --operation conv";

/// What MIOpen logs of a kernel that no database has.
///
/// Source: ROCm/MIOpen 2d1fd997a, `LoadBinary` in src/binary_cache.cpp.
const MISS: &str = "Unable to load binary for: ";

/// A key: name and arguments.
type Key = (String, String);

/// The library, and what it is started with.
struct Library {
    facts: Value,
    /// A directory of this run's own.
    dir: PathBuf,
    device: String,
    preload: PathBuf,
    sqlite: PathBuf,
}

impl Ask {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        cmd!(sh, "cargo build --release --package gfxpack --package gfxpack-miopen-probe").run()?;
        let gfxpack = built::gfxpack(sh)?;
        let dir = built::dir().join("ask");
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(&dir)?;
        let all = self.problems(sh, &gfxpack)?;
        let some: Vec<String> = thinned(&all, self.missed);
        let library = self.library(sh, &gfxpack, &dir)?;
        let cores = thread::available_parallelism()?.get();

        let started = Instant::now();
        let missed = library.missed(&some, cores)?;
        let seconds = started.elapsed().as_secs_f64();
        say(&format!("{} problems missed and logged: {seconds:.1} s", some.len()));
        let first = row("MIOpen misses, its log is read", vec![seconds], missed.len(), some.len());
        let (asked, same) = self.asked(sh, &gfxpack, &dir, &some, "gfxpack ask, the same")?;
        let (_, many) = self.asked(sh, &gfxpack, &dir, &all, "gfxpack ask, all")?;
        let unknown = missed.difference(&asked).next();
        ensure!(unknown.is_none(), "MIOpen missed {unknown:?}, which asking has not told");

        let table = |title: String, rows: Vec<Row>| {
            let columns = vec!["problems", "keys", "problems a second", "keys a second"];
            Table { title, columns, rows }.markdown()
        };
        let missing = format!("Kernels of {} convolutions for {}", some.len(), self.target);
        let asking = format!("Kernels of {} convolutions for {}", all.len(), self.target);
        let text = format!(
            "MIOpen {}, convolutions of well-known networks in three directions, asked as a user \
             does, on {cores} cores. Its log (`MIOPEN_LOG_LEVEL=6`, MIOpenDriver, one process for \
             each problem and {cores} at a time, no kernel database, compilers that refuse) has \
             the kernels of a search alone, and of each solver those up to the first that is \
             missing; asking tells all of them, and those of immediate mode. Rounds of asking: \
             {}, of missing: 1.\n\n{}\n{}",
            library.facts["version"].as_str().unwrap_or("of unknown version"),
            self.rounds,
            table(missing, vec![first, same]),
            table(asking, vec![many]),
        );
        say(&text);
        write_section(&root().join("docs/benchmarks.md"), "ask", &text)
    }

    /// Lines, taken evenly from those of all networks.
    fn problems(&self, sh: &Shell, gfxpack: &Path) -> anyhow::Result<Vec<String>> {
        let words = || NETWORKS.split_ascii_whitespace().chain(WAYS.split_ascii_whitespace());
        let read = |layout: &str| {
            cmd!(sh, "{gfxpack} problems").args(words()).args(["--layout", layout]).quiet().read()
        };
        let mut lines: BTreeSet<String> = BTreeSet::new();
        for layout in ["nchw", "nhwc"] {
            lines.extend(read(layout)?.lines().map(str::to_owned));
        }
        ensure!(lines.len() >= self.problems, "there are {} problems only", lines.len());
        Ok(thinned(&Vec::from_iter(lines), self.problems))
    }

    fn library(&self, sh: &Shell, gfxpack: &Path, dir: &Path) -> anyhow::Result<Library> {
        let miopen = &self.miopen;
        let told = cmd!(sh, "{gfxpack} miopen --miopen {miopen} --message-format json").read()?;
        let messages = told.lines().map(serde_json::from_str::<Value>);
        let messages = messages.collect::<Result<Vec<_>, _>>()?;
        let facts = messages.into_iter().find(|message| message["type"] == "miopen");
        let facts = facts.context("gfxpack tells of no library")?;
        let mut sonames = BTreeSet::new();
        for file in ["file", "driver"] {
            let file = facts[file].as_str().with_context(|| format!("there is no {file}"))?;
            let dynamic = cmd!(sh, "readelf --dynamic --wide {file}").quiet().read()?;
            let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
            let name = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
            sonames.extend(needed.filter_map(name));
        }
        let places: Vec<PathBuf> = paths(&facts["search_path"]);
        let is_there = |soname: &String| places.iter().any(|dir| dir.join(soname).is_file());
        let sqlite =
            places.iter().map(|dir| dir.join("libsqlite3.so.0")).find(|file| file.is_file());
        let stubs = dir.join("stubs");
        fs::create_dir_all(&stubs)?;
        for soname in &sonames {
            // Those of the GPU, and SQLite, whose place the preloaded library takes.
            if !is_there(soname) || soname.starts_with("libsqlite3.so") {
                let out = stubs.join(soname);
                cmd!(sh, "cc -shared -x c /dev/null -Wl,-soname,{soname} -o {out}")
                    .quiet()
                    .run()?;
            }
        }
        Ok(Library {
            facts,
            dir: dir.to_owned(),
            device: self.target.replace(['@', '_'], " "),
            preload: root().join("target/release/libgfxpack_miopen_preload.so"),
            sqlite: sqlite.context("there is no SQLite")?,
        })
    }

    /// Asks as often as wanted: the keys, and how long that took.
    fn asked(
        &self,
        sh: &Shell,
        gfxpack: &Path,
        dir: &Path,
        problems: &[String],
        name: &str,
    ) -> anyhow::Result<(BTreeSet<Key>, Row)> {
        let (list, out) = (dir.join("problems.txt"), dir.join("keys.jsonl"));
        fs::write(&list, problems.join("\n") + "\n")?;
        let (miopen, target) = (&self.miopen, &self.target);
        let mut seconds = Vec::new();
        for _ in 0..self.rounds {
            let started = Instant::now();
            cmd!(
                sh,
                "{gfxpack} ask --problems {list} --miopen {miopen} --target {target} -o {out}"
            )
            .quiet()
            .ignore_stderr()
            .run()?;
            seconds.push(started.elapsed().as_secs_f64());
            say(&format!("{name}: {:.1} s", median(&seconds)));
        }
        let text = fs::read_to_string(&out)?;
        let keys = text.lines().map(|line| {
            let key: Value = serde_json::from_str(line)?;
            let field = |name: &str| key[name].as_str().unwrap_or_default().to_owned();
            Ok((field("kernel_name"), field("kernel_args")))
        });
        let keys = keys.collect::<anyhow::Result<BTreeSet<Key>>>()?;
        let row = row(name, seconds, keys.len(), problems.len());
        Ok((keys, row))
    }
}

impl Library {
    /// The keys that MIOpenDriver's runs miss, `jobs` at a time.
    fn missed(&self, problems: &[String], jobs: usize) -> anyhow::Result<BTreeSet<Key>> {
        let (next, keys) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
        thread::scope(|scope| {
            let work = || -> anyhow::Result<()> {
                while let Some(line) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = self.missed_by(line)?;
                    keys.lock().expect("no thread panics").extend(found);
                }
                Ok(())
            };
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        Ok(keys.into_inner()?)
    }

    fn missed_by(&self, line: &str) -> anyhow::Result<BTreeSet<Key>> {
        let place = tempfile::tempdir_in(&self.dir)?;
        let file = |name: &str| self.facts[name].as_str().unwrap_or_default().to_owned();
        let mut search_path = vec![self.dir.join("stubs")];
        search_path.extend(paths(&self.facts["search_path"]));
        let search_path = std::env::join_paths(search_path)?;
        let sh = Shell::new()?;
        let (loader, driver, preload) = (file("loader"), file("driver"), &self.preload);
        let program =
            cmd!(sh, "{loader} --preload {preload} --library-path {search_path} {driver}");
        let mut command = Command::from(program);
        let words = line.split_ascii_whitespace().skip_while(|word| *word == "MIOpenDriver");
        command.args(words).args(["-V", "0", "-i", "1"]);
        command.env_clear().current_dir(place.path()).stdin(Stdio::null()).stdout(Stdio::null());
        for place_of in ["HOME", "TMPDIR", "MIOPEN_SYSTEM_DB_PATH", "MIOPEN_USER_DB_PATH"] {
            command.env(place_of, place.path());
        }
        command
            .env("MIOPEN_CUSTOM_CACHE_DIR", place.path())
            .env("MIOPEN_LOG_LEVEL", "6")
            .env("MIOPEN_FIND_MODE", "1")
            .env("MIOPEN_EXPERIMENTAL_GCN_ASM_PATH", preload)
            .env("GFXPACK_PRELOAD_DEVICE", &self.device)
            .env("GFXPACK_PRELOAD_NOTES", "/dev/null")
            .env("GFXPACK_PRELOAD_SQLITE", &self.sqlite)
            .env("GFXPACK_PRELOAD_MISSES", "stop");
        let mut child =
            command.stderr(Stdio::piped()).spawn().context("failed to start MIOpenDriver")?;
        let log = BufReader::new(child.stderr.take().context("stderr is piped")?);
        let mut keys = BTreeSet::new();
        for line in log.split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let key = line.split_once(MISS).and_then(|(_, key)| key.split_once("; args: "));
            // The name is logged as a path: in quotes.
            let plain = |name: &str| name.trim_matches('"').to_owned();
            keys.extend(key.map(|(name, arguments)| (plain(name), arguments.to_owned())));
        }
        // It fails, since nothing is there to run.
        child.wait()?;
        ensure!(!keys.is_empty(), "MIOpenDriver {line} logged no kernel that it missed");
        Ok(keys)
    }
}

fn row(name: &str, seconds: Vec<f64>, keys: usize, problems: usize) -> Row {
    let taken = median(&seconds);
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let rate = |count: usize| format!("{:.1}", count as f64 / taken);
    let more = vec![problems.to_string(), keys.to_string(), rate(problems), rate(keys)];
    Row { name: name.to_owned(), seconds, more }
}

/// So many lines, evenly from all.
fn thinned(lines: &[String], count: usize) -> Vec<String> {
    (0..count).map(|number| lines[number * lines.len() / count].clone()).collect()
}

fn paths(array: &Value) -> Vec<PathBuf> {
    let paths = array.as_array().into_iter().flatten().filter_map(Value::as_str);
    paths.map(PathBuf::from).collect()
}
