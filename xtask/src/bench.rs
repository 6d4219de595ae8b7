//! `cargo xtask bench`: gfxpack beside other tools that do the same, timed by hyperfine.

use std::fmt::Write as _;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::print;
use crate::root;
use crate::setup::{self, Need, need};

/// Time gfxpack and tools that do the same, and print one table
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Only what has this in its name, such as "package"
    only: Option<String>,
    /// How often each command is timed
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Install what is missing from the system's packages, saying first what and why
    #[arg(long)]
    setup: bool,
}

/// What is compared, gfxpack's command, the other's, and what is done before each run of either.
type Comparison = (&'static str, &'static str, &'static str, &'static str);

/// `PACKAGE` stands for `gfxpack package` with what every package has. gfxpack's time includes what
/// the others leave out: a bill of materials, and getting the file onto the disk.
const COMPARISONS: [Comparison; 8] = [
    (
        "compile",
        "gfxpack build --plan plan --out out --cache-dir cache --quiet",
        "ninja -C stage",
        "rm -rf out cache stage/objects && mkdir stage/objects",
    ),
    (
        "compile HIP",
        "gfxpack build --plan hip-plan --out out --cache-dir cache --quiet",
        "ninja -C hip-stage",
        "rm -rf out cache hip-stage/objects && mkdir hip-stage/objects",
    ),
    (
        "compile again",
        "gfxpack build --plan plan --out out --cache-dir cache --quiet",
        "ninja -C stage",
        "true",
    ),
    (
        "verify a kdb",
        "gfxpack kdb verify large/gfx906_60.kdb",
        "python3 kdb.py verify large/gfx906_60.kdb",
        "true",
    ),
    (
        "package as .deb, xz 1",
        "PACKAGE --format deb",
        "(cd tree && md5sum usr/share/bench/kdb >DEBIAN/md5sums) && \
         dpkg-deb -Zxz -z1 --root-owner-group --build tree theirs.deb",
        "rm -rf packages",
    ),
    (
        "package as .rpm, zstd 3",
        "PACKAGE --format rpm",
        "rpmbuild -bb --quiet --define \"_topdir $PWD/rpm\" --define '_binary_payload w3T0.zstdio' \
         --define '__os_install_post %{nil}' bench.spec",
        "rm -rf packages",
    ),
    (
        "package as .tar.zst, 3",
        "PACKAGE --format tar.zst",
        "tar -c tree/usr | zstd -q -f -T0 -3 -o theirs.tar.zst",
        "rm -rf packages",
    ),
    (
        "package as .tar.gz, 6",
        "PACKAGE --format tar.gz",
        "tar -c tree/usr | pigz -6 >theirs.tar.gz",
        "rm -rf packages",
    ),
];

const PACKAGE: &str = "gfxpack package large/gfx906_60.kdb --out packages --cache-dir cache \
    --package-version 1 --license MIT --copyright Nobody --maintainer 'Nobody <nobody@example.org>'";

/// What is compiled: README's kernels, and half of the HIP kernels of two other networks. The other
/// tools get the commands of gfxpack's own plan, and pack a copy of the kdb.
const PREPARE: &str = "\
set -eu
forward='--type fp16,fp32 --direction forward'
gfxpack problems resnet18 resnet50 --batch 1 $forward --quiet --out problems.txt
rm -rf plan stage hip-plan hip-stage sources large tree rpm
asked='--miopen lock:../../packaging/miopen.lock'
three='--target gfx906_60,gfx90a@104,gfx1030 --cache-dir cache --quiet'
gfxpack plan --problems problems.txt $asked $three --out plan
gfxpack plan --problems problems.txt $asked $three --stage stage
gfxpack problems unet mobilenet-v2 --batch 1,32 --type fp16,fp32 --quiet --out hip-problems.txt
gfxpack ask --problems hip-problems.txt $asked --target gfx906_60 --quiet --out keys.jsonl
grep '[.]cpp[.]o\"' keys.jsonl | awk 'NR % 2' >hip.jsonl
gfxpack miopen $asked --sources sources --quiet
one='--target gfx906_60 --cache-dir cache --quiet'
gfxpack plan --keys hip.jsonl --source-dir sources $one --out hip-plan
gfxpack plan --keys hip.jsonl --source-dir sources $one --stage hip-stage
gfxpack build --plan plan --out out --cache-dir cache --quiet
mkdir -p stage/objects hip-stage/objects large tree/DEBIAN tree/usr/share/bench rpm
python3 kdb.py enlarge out/kdb/gfx906_60.kdb large/gfx906_60.kdb 20000
cp large/gfx906_60.kdb tree/usr/share/bench/kdb
cat >tree/DEBIAN/control <<END
Package: bench
Version: 1
Architecture: all
Maintainer: Nobody <nobody@example.org>
Description: one large file
END
cat >bench.spec <<END
Name: bench
Version: 1
Release: 1
Summary: One large file
License: MIT
BuildArch: noarch
%description
One large file.
%install
mkdir -p %{buildroot}/usr/share/bench
ln $PWD/tree/usr/share/bench/kdb %{buildroot}/usr/share/bench/kdb
%files
/usr/share/bench/kdb
END
";

const NEEDS: &[Need] = &[
    need("hyperfine", "time commands", "hyperfine", "hyperfine"),
    need("ninja", "compile beside gfxpack", "ninja-build", "ninja-build"),
    need("python3", "verify kdbs beside gfxpack", "python3", "python3"),
    need("dpkg-deb", "pack beside gfxpack", "dpkg", "dpkg"),
    need("rpmbuild", "pack beside gfxpack", "rpm", "rpm-build"),
    need("zstd", "pack beside gfxpack", "zstd", "zstd"),
    need("pigz", "pack beside gfxpack", "pigz", "pigz"),
];

impl Bench {
    pub(crate) fn run(&self, sh: &Shell) -> anyhow::Result<()> {
        setup::ensure(sh, NEEDS, self.setup)?;
        sh.change_dir(root());
        cmd!(sh, "cargo build --release --package gfxpack --package gfxpack-miopen-probe").run()?;
        let release = root().join("target/release").display().to_string();
        let path = sh.var("PATH").unwrap_or_default();
        let _path = sh.push_env("PATH", format!("{release}:{path}"));
        sh.change_dir(sh.create_dir("target/bench")?);
        sh.write_file("kdb.py", include_str!("bench/kdb.py"))?;
        cmd!(sh, "sh -c {PREPARE}").quiet().run().context("failed to prepare")?;
        for stage in ["stage", "hip-stage"] {
            let commands = sh.read_file(format!("{stage}/commands"))?;
            sh.write_file(format!("{stage}/build.ninja"), ninja(&commands))?;
        }

        let mut table = "| | gfxpack | other | times as fast | CPU | other's | times less |\n\
                         | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
            .to_owned();
        let runs = self.runs.to_string();
        let is_wanted = |name: &str| self.only.as_ref().is_none_or(|only| name.contains(only));
        for (name, ours, other, prepare) in COMPARISONS.iter().filter(|one| is_wanted(one.0)) {
            let ours = ours.replace("PACKAGE", PACKAGE);
            cmd!(sh, "hyperfine --style basic --warmup 1 --runs {runs} --prepare {prepare}")
                .args(["--export-json", "times.json", &ours, other])
                .run()?;
            let times: Value = serde_json::from_str(&sh.read_file("times.json")?)?;
            let of =
                |at: usize, what: &str| times["results"][at][what].as_f64().unwrap_or(f64::NAN);
            write!(table, "\n| {name} |")?;
            for [ours, other] in [
                [0, 1].map(|at| of(at, "median")),
                [0, 1].map(|at| of(at, "user") + of(at, "system")),
            ] {
                write!(table, " {ours:.2} s | {other:.2} s | {:.2} |", other / ours)?;
            }
        }
        print(&format!("\n{table}"));
        Ok(())
    }
}

/// A build.ninja that runs these commands, each of which ends with `-o ../OBJECT`.
fn ninja(commands: &str) -> String {
    let mut text = "rule run\n  command = $run\n".to_owned();
    for command in commands.lines() {
        let object = command.rsplit_once(" -o ../").map_or("", |(_, object)| object);
        let command = command.replace('$', "$$");
        text.push_str(&format!("build {object}: run\n  run = {command}\n"));
    }
    text
}
