//! The programs that make packages, and what each needs besides the payload.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::measure::Benchmark;

/// The checks and digests that gfxpack makes, with other tools.
const CHECKS: &str = "sqlite3 \"$KDB\" 'PRAGMA integrity_check' >/dev/null && \
                      sha1sum \"$KDB\" >/dev/null && sha256sum \"$KDB\" >/dev/null && ";

/// The settings of packages, for all programs.
pub(super) struct Setting {
    pub(super) title: &'static str,
    pub(super) format: &'static str,
    pub(super) codec: &'static str,
    pub(super) level: u32,
}

/// A program that makes packages, with everything that it needs.
pub(super) struct Packer {
    /// It writes to `out` in its directory.
    pub(super) benchmark: Benchmark,
    /// The names of the benchmarks with which gfxpack is compared; empty for others.
    rivals: Vec<String>,
    /// The extension of the package.
    pub(super) ending: &'static str,
    /// Size of the package, in bytes.
    pub(super) size: u64,
}

impl Packer {
    fn new(name: &str, dir: &Path, ending: &'static str, args: &[&str]) -> Self {
        Self { benchmark: Benchmark::new(name, dir, args), rivals: Vec::new(), ending, size: 0 }
    }

    /// How many times as fast it is as each of its rivals.
    pub(super) fn ratios(&self, packers: &[Self]) -> Vec<f64> {
        let rivals = self.rivals.iter();
        let rivals =
            rivals.filter_map(|name| packers.iter().find(|one| one.benchmark.name == *name));
        rivals.map(|rival| rival.benchmark.seconds() / self.benchmark.seconds()).collect()
    }
}

/// For each format: the tool alone, the tool with checks, and gfxpack.
pub(super) fn all(
    setting: &Setting,
    gfxpack: &Path,
    dir: &Path,
    (kdb, copy): (&Path, &Path),
) -> anyhow::Result<Vec<Packer>> {
    let mut packers = match setting.format {
        "rpm" => rpms(dir, copy)?,
        "deb" => debs(dir, copy, setting.codec, setting.level)?,
        _ => tarballs(dir, copy, setting.format)?,
    };
    let rivals = [1, 0].map(|at: usize| packers[at].benchmark.name.clone());
    for (name, more) in [("gfxpack", None), ("gfxpack --verify-all", Some("--verify-all"))] {
        packers.push(ours(gfxpack, dir, kdb, setting, (name, more), &rivals)?);
    }
    Ok(packers)
}

/// An empty directory with this name, with `out` in it.
fn fresh(dir: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let dir = dir.join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(dir.join("out"))?;
    Ok(dir)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the checkout's path is UTF-8")
}

/// gfxpack itself, which is compared with the others.
fn ours(
    gfxpack: &Path,
    dir: &Path,
    kdb: &Path,
    setting: &Setting,
    (name, more): (&'static str, Option<&str>),
    rivals: &[String],
) -> anyhow::Result<Packer> {
    let cache = dir.join("cache");
    let dir = fresh(dir, &format!("ours{}", more.unwrap_or_default()))?;
    let Setting { format, codec, level, .. } = setting;
    let compression = format!("{codec}:{level}");
    let mut arguments = vec![text(gfxpack), "package", text(kdb), "--out", "out"];
    arguments.extend(["--format", format, "--cache-dir", text(&cache), "--package-version", "1"]);
    arguments.extend(["--license", "MIT", "--copyright", "Nobody"]);
    arguments.extend(["--maintainer", "Nobody <nobody@example.org>"]);
    match *format {
        "deb" => arguments.extend(["--deb-compression", &compression]),
        "rpm" => arguments.extend(["--rpm-compression", &compression]),
        _ => {}
    }
    arguments.extend(more);
    let ending = format.rsplit('.').next().unwrap_or(format);
    Ok(Packer { rivals: rivals.to_vec(), ..Packer::new(name, &dir, ending, &arguments) })
}

/// A shell script that writes the package into `out`; `$KDB` is the kdb.
fn script(name: &str, dir: &Path, kdb: &Path, ending: &'static str, script: &str) -> Packer {
    let set = format!("export KDB=\"$0\"; {script}");
    Packer::new(name, dir, ending, &["sh", "-ec", &set, text(kdb)])
}

/// dpkg-deb, with MD5 digests, which debhelper makes before it runs dpkg-deb.
fn debs(dir: &Path, kdb: &Path, codec: &str, level: u32) -> anyhow::Result<Vec<Packer>> {
    let program = if codec == "xz" { "-Zxz" } else { "-Zzstd" };
    let sums = "(cd tree && find usr -type f -print0 | xargs -0 md5sum > DEBIAN/md5sums) && ";
    let pack = format!("dpkg-deb {program} -z{level} --root-owner-group --build tree out");
    let tree = |name| debian_tree(dir, kdb, name);
    let whole = format!("{CHECKS}{sums}{pack}");
    Ok(vec![
        script("md5sum, dpkg-deb", &tree("sums")?, kdb, "deb", &format!("{sums}{pack}")),
        script("checks, md5sum, dpkg-deb", &tree("checks")?, kdb, "deb", &whole),
        script("dpkg-deb without digests", &tree("dpkg-deb")?, kdb, "deb", &pack),
    ])
}

fn tarballs(dir: &Path, kdb: &Path, format: &str) -> anyhow::Result<Vec<Packer>> {
    let (tool, checked, ending, pack) = match format {
        "tar.gz" => ("pigz", "checks, pigz", "gz", "pigz -6"),
        _ => ("zstd -T0", "checks, zstd -T0", "zst", "zstd -q -T0 -3"),
    };
    let pack =
        format!("tar -c -C \"${{KDB%/*}}\" \"${{KDB##*/}}\" | {pack} > out/kdb.tar.{ending}");
    let whole = format!("{CHECKS}{pack}");
    Ok(vec![
        script(tool, &fresh(dir, "tar")?, kdb, ending, &pack),
        script(checked, &fresh(dir, "tar-checked")?, kdb, ending, &whole),
    ])
}

/// A directory with this name for dpkg-deb to pack.
fn debian_tree(dir: &Path, payload: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let stage = fresh(dir, name)?;
    let place = stage.join("tree/usr/share/bench");
    fs::create_dir_all(&place)?;
    fs::create_dir_all(stage.join("tree/DEBIAN"))?;
    fs::hard_link(payload, place.join("payload"))?;
    let control = "Package: bench\nVersion: 1.0-1\nArchitecture: all\n\
                   Maintainer: Nobody <nobody@example.org>\nDescription: one large file\n";
    fs::write(stage.join("tree/DEBIAN/control"), control)?;
    Ok(stage)
}

fn rpms(dir: &Path, kdb: &Path) -> anyhow::Result<Vec<Packer>> {
    let spec = format!(
        "Name: bench\nVersion: 1.0\nRelease: 1\nSummary: One large file\nLicense: MIT\n\
         BuildArch: noarch\n%description\nOne large file.\n%install\n\
         mkdir -p %{{buildroot}}/usr/share/bench\n\
         ln {} %{{buildroot}}/usr/share/bench/payload\n%files\n/usr/share/bench/payload\n",
        kdb.display()
    );
    let pack = "rpmbuild -bb --quiet --define \"_topdir $PWD\" --define \"_rpmdir $PWD/out\" \
                --define '_binary_payload w3T0.zstdio' --define '__os_install_post %{nil}' bench.spec";
    let whole = format!("{CHECKS}{pack}");
    let mut packers = Vec::new();
    for (name, directory, pack) in
        [("rpmbuild", "rpmbuild", pack), ("checks, rpmbuild", "rpmbuild-checked", &whole)]
    {
        let place = fresh(dir, directory)?;
        fs::write(place.join("bench.spec"), &spec)?;
        packers.push(script(name, &place, kdb, "rpm", pack));
    }
    Ok(packers)
}
