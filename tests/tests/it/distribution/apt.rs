//! apt in a root of its own, from repositories whose signatures it checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::project::{as_root, binary};
use gfxpack_model::package::{Content, PackageFile, Relation, RelationKind};

use super::choice::{MI50, sysfs};
use super::lab::{KEY, Lab, ok, other, run_to_end};

/// A system that has nothing but dpkg's and apt's directories.
struct Root {
    dir: PathBuf,
}

impl Root {
    fn new(lab: &Lab, repository: &str) -> Self {
        let root = Self { dir: lab.path("root") };
        for dir in ["etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d"] {
            fs::create_dir_all(root.dir.join(dir)).expect("made");
        }
        for dir in ["lib/dpkg/info", "lib/dpkg/updates", "lib/dpkg/triggers", "log/apt"] {
            fs::create_dir_all(root.dir.join("var").join(dir)).expect("made");
        }
        for dir in ["var/lib/apt/lists/partial", "var/cache/apt/archives/partial"] {
            fs::create_dir_all(root.dir.join(dir)).expect("made");
        }
        fs::write(root.dir.join("var/lib/dpkg/status"), "").expect("written");
        let shown = root.dir.display();
        let settings = format!(
            "Dir \"{shown}/\";\nDir::State::status \"{shown}/var/lib/dpkg/status\";\n\
             DPkg::Options {{ \"--root={shown}\"; \"--force-not-root\"; \
             \"--log={shown}/dpkg.log\"; }};\nAPT::Sandbox::User \"root\";\n"
        );
        fs::write(lab.path("apt.conf"), settings).expect("written");
        root.sources(lab, repository);
        root
    }

    fn sources(&self, lab: &Lab, repository: &str) {
        let (key, dir) = (lab.key_file(), lab.path(repository));
        let line =
            format!("deb [signed-by={}] file:{} stable main\n", key.display(), dir.display());
        fs::write(self.dir.join("etc/apt/sources.list"), line).expect("written");
    }

    fn command(&self, lab: &Lab, program: &str) -> Command {
        let mut command = as_root(program);
        command.env("APT_CONFIG", lab.path("apt.conf")).env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    #[track_caller]
    fn apt(&self, lab: &Lab, args: &[&str]) -> String {
        ok(self.command(lab, "apt-get").arg("--yes").args(args))
    }

    /// Installed packages, `name version` each.
    fn installed(&self) -> Vec<String> {
        let mut query = as_root("dpkg-query");
        query.arg(format!("--admindir={}", self.dir.join("var/lib/dpkg").display()));
        let listed =
            run_to_end(query.args(["--show", "--showformat", "${Package} ${Version}\n"])).stdout;
        listed.lines().map(str::to_owned).collect()
    }

    fn file(&self, path: &str) -> Vec<u8> {
        fs::read(self.dir.join(path)).unwrap_or_default()
    }
}

const KDB: &str = "opt/rocm/share/miopen/db/gfx906_60.kdb";

#[test]
fn upgrades_from_and_to_amds_names() {
    let lab = Lab::new();
    let theirs = |name: &str, version: &str| other(name, version, &format!("/{KDB}"), "AMD's");
    // What AMD's repository had in the past, and may have again.
    lab.stand_in("old", &theirs("miopenkernels-gfx906-60kdb", "0.9"));
    lab.repo("old");
    let root = Root::new(&lab, "old");
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["install", "miopenkernels-gfx906-60kdb"]);
    assert_eq!(root.file(KDB), b"AMD's");

    lab.dist("new", &["--target", "gfx906_60"]);
    lab.stand_in("new", &theirs("miopenkernels-gfx906-60kdb", "9.0"));
    lab.repo("new");
    root.sources(&lab, "new");
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["install", "miopen-hip-gfx906-60kdb"]);
    assert_eq!(root.installed(), ["miopen-hip-gfx906-60kdb 1.2.3-1"]);
    let ours = fs::read(lab.path("new/kdb/gfx906_60.kdb")).expect("built");
    assert!(root.file(KDB) == ours, "the kdb is ours");
    let printed = root.apt(&lab, &["install", "miopenkernels-gfx906-60kdb"]);
    assert_eq!(root.installed(), ["miopenkernels-gfx906-60kdb 9.0-1"], "{printed}");
    assert_eq!(root.file(KDB), b"AMD's");
    root.apt(&lab, &["purge", "miopenkernels-gfx906-60kdb"]);

    // Of the same name, the version decides.
    lab.stand_in("same", &theirs("miopen-hip-gfx906-60kdb", "1.0"));
    lab.repo("same");
    root.sources(&lab, "same");
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["install", "miopen-hip-gfx906-60kdb"]);
    root.sources(&lab, "new");
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["upgrade"]);
    assert_eq!(root.installed(), ["miopen-hip-gfx906-60kdb 1.2.3-1"]);
    assert!(root.file(KDB) == ours, "the kdb is ours");
    let mut verify = as_root("dpkg");
    verify.arg(format!("--root={}", root.dir.display())).arg("--verify");
    assert_eq!(ok(&mut verify), "");
}

#[test]
fn versions_of_rocm_stand_side_by_side_and_go_without_a_trace() {
    let lab = Lab::new();
    for version in ["6.3.4", "6.4.1"] {
        let out = format!("a repository/{version}");
        lab.dist(&out, &["--target", "gfx906", "--layout", &format!("rocm-{version}")]);
    }
    lab.repo("a repository");
    let root = Root::new(&lab, "a repository");
    // The one file that the repository offers for apt, with the key in it.
    fs::remove_file(root.dir.join("etc/apt/sources.list")).expect("removed");
    let own = root.dir.join("etc/apt/sources.list.d/gfxpack.sources");
    fs::copy(lab.path("a repository/gfxpack.sources"), own).expect("copied");
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["install", "miopen-hip-gfx906kdb6.3.4", "miopen-hip-gfx906kdb"]);
    assert_eq!(
        root.installed(),
        [
            "miopen-hip-gfx906kdb 6.4.1+1.2.3-1",
            "miopen-hip-gfx906kdb6.3.4 1.2.3-1",
            "miopen-hip-gfx906kdb6.4.1 1.2.3-1"
        ]
    );
    for version in ["6.3.4", "6.4.1"] {
        let built = fs::read(lab.path(&format!("a repository/{version}/kdb/gfx906.kdb")));
        let there = root.file(&format!("opt/rocm-{version}/share/miopen/db/gfx906.kdb"));
        assert!(there == built.expect("built"), "{version}");
    }
    root.apt(&lab, &["remove", "miopen-hip-gfx906kdb6.3.4"]);
    assert!(!root.dir.join("opt/rocm-6.3.4").exists());
    assert!(root.dir.join("opt/rocm-6.4.1").exists());
    root.apt(&lab, &["purge", "miopen-hip-gfx906kdb", "miopen-hip-gfx906kdb6.4.1"]);
    assert_eq!(root.installed(), Vec::<String>::new());
    assert!(!root.dir.join("opt").exists() && !root.dir.join("usr").exists());
}

#[test]
fn an_index_lists_new_packages_and_unsigned_ones_are_refused() {
    let lab = Lab::new();
    lab.dist("repository/a", &["--target", "gfx906"]);
    lab.repo("repository");
    let root = Root::new(&lab, "repository");
    root.apt(&lab, &["update"]);
    let shown = ok(root.command(&lab, "apt-cache").args(["show", "miopen-hip-gfx906kdb"]));
    for field in ["X-ROCm-GPU-Architecture: gfx906\n", "Modaliases: amdgpu(pci:v00001002d"] {
        assert!(shown.contains(field), "{shown}");
    }
    // What this machine would need if it had an MI50.
    let sysfs = sysfs(&lab, MI50);
    // Words for apt-get that apt-cache does not know are not for it.
    let args = ["install", "--no-hip", "--sysfs", &sysfs, "--with", "apt"];
    let args = [&args[..], &["--", "--no-install-recommends", "-oDebug::NoLocking=1"]].concat();
    ok(root.command(&lab, binary().to_str().expect("UTF-8")).args(args));
    assert_eq!(root.installed(), ["miopen-hip-gfx906kdb 1.2.3-1"]);
    // The index made step by step is the one made at once, also of a package that was made again.
    lab.dist("repository/b", &["--target", "gfx906_60"]);
    lab.dist("repository/a", &["--target", "gfx906", "--maintainer", "Else <else@example.org>"]);
    lab.repo("repository");
    let fresh = |name: &str| {
        for entry in ["dists", "repodata"] {
            fs::remove_dir_all(lab.path("repository").join(entry)).expect("removed");
        }
        lab.repo("repository");
        fs::read(lab.path("repository").join(name)).expect("indexed")
    };
    for name in ["dists/stable/InRelease", "repodata/repomd.xml"] {
        let grown = fs::read(lab.path("repository").join(name)).expect("indexed");
        assert!(grown == fresh(name), "{name}");
    }
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["install", "miopen-hip-gfx906-60kdb"]);
    // By its hash, each index can be fetched while another takes its place.
    let hashes = lab.path("repository/dists/stable/main/binary-all/by-hash/SHA256");
    assert_eq!(fs::read_dir(&hashes).expect("lists").count(), 3);

    damage(&lab.path("repository/dists/stable/InRelease"));
    let refused = run_to_end(root.command(&lab, "apt-get").args(["--yes", "update"]));
    let output = format!("{}{}", refused.stdout, refused.stderr);
    assert!(output.contains("BADSIG") || output.contains("invalid"), "{output}");
    let stderr = lab.run(&["repo", "repository"]).expect_code(0).stderr;
    assert!(stderr.contains("the repository is not signed"), "{stderr}");
    let sources = fs::read_to_string(lab.path("repository/gfxpack.sources")).expect("read");
    assert!(sources.contains("\nTrusted: yes\n") && !sources.contains("PGP"), "{sources}");
    let refused = run_to_end(root.command(&lab, "apt-get").args(["--yes", "update"]));
    let output = format!("{}{}", refused.stdout, refused.stderr);
    assert!(output.contains("not signed") || output.contains("no longer signed"), "{output}");
}

/// Changes a letter of what is signed.
fn damage(path: &Path) {
    let text = fs::read_to_string(path).expect("read");
    fs::write(path, text.replace("Origin: gfxpack", "Origin: gfxpock")).expect("written");
}

#[test]
fn slim_packages_take_the_originals_place_and_go_back() {
    let lab = Lab::new();
    let code = |gpu: &str| format!("usr/lib/rocblas/library/TensileLibrary_{gpu}.co");
    let mut library = other("librocblas5", "1.0", &format!("/{}", code("gfx90a")), "gfx90a's");
    let more = Content::Bytes("gfx1030's".into());
    library.files.push(PackageFile::readable(format!("/{}", code("gfx1030")), more));
    lab.stand_in("whole", &library);
    let mut dev = other("librocblas-dev", "1.0", "/usr/include/rocblas.h", "header");
    let version = Some(("=".to_owned(), "1.0-1".to_owned()));
    let name = "librocblas5".to_owned();
    dev.relations.push(Relation { kind: RelationKind::Depends, name, version });
    lab.stand_in("whole", &dev);
    lab.repo("whole");
    let root = Root::new(&lab, "whole");
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["install", "librocblas-dev"]);
    let original = ["librocblas-dev 1.0-1", "librocblas5 1.0-1"];
    assert_eq!(root.installed(), original);

    let debs = ["whole/librocblas-dev_1.0-1_all.deb", "whole/librocblas5_1.0-1_all.deb"];
    let slim = |debs: &[&str]| {
        let more = ["--target", "gfx1030", "--out", "slim", "--no-hip"];
        lab.run(&[&["slim"], debs, &more].concat())
    };
    let alone = slim(&debs[..1]).expect_code(2).stderr;
    assert!(alone.contains("it needs exactly 1.0-1 of `librocblas5`"), "{alone}");
    slim(&debs).expect_code(0);
    lab.repo("slim");
    root.sources(&lab, "slim");
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["upgrade"]);
    assert_eq!(root.installed(), original.map(|it| format!("{it}+gfx1030")));
    assert_eq!(root.file(&code("gfx1030")), b"gfx1030's");
    assert!(!root.dir.join(code("gfx90a")).exists());
    let mut verify = as_root("dpkg");
    verify.arg(format!("--root={}", root.dir.display())).arg("--verify");
    assert_eq!(ok(&mut verify), "");

    root.sources(&lab, "whole");
    root.apt(&lab, &["update"]);
    let back = ["install", "--allow-downgrades", "librocblas5=1.0-1", "librocblas-dev=1.0-1"];
    root.apt(&lab, &back);
    assert_eq!(root.installed(), original);
    assert_eq!(root.file(&code("gfx90a")), b"gfx90a's");

    // The distribution has a next version. As the page says, a pin or a hold stays with ours.
    for mut next in [library, dev] {
        "2".clone_into(&mut next.revision);
        for relation in &mut next.relations {
            relation.version = Some(("=".to_owned(), "1.0-2".to_owned()));
        }
        lab.stand_in("next", &next);
    }
    lab.run(&["repo", "next", "--origin", "Debian", "--sign-key", KEY]).expect_code(0);
    root.sources(&lab, "slim");
    let etc = root.dir.join("etc/apt");
    fs::rename(etc.join("sources.list"), etc.join("sources.list.d/slim.list")).expect("renamed");
    root.sources(&lab, "next");
    let page = include_str!("../../../../docs/slim.md");
    let pin = page.split_once("```text\n").expect("a file").1.split_once("```").expect("whole").0;
    let preferences = etc.join("preferences.d/slim");
    fs::write(&preferences, pin).expect("written");
    let slim = original.map(|it| format!("{it}+gfx1030"));
    root.apt(&lab, &["update"]);
    root.apt(&lab, &["upgrade"]);
    assert_eq!(root.installed(), slim);
    fs::remove_file(preferences).expect("removed");
    let mark = |word: &str| ok(root.command(&lab, "apt-mark").args([word, "librocblas5"]));
    mark("hold");
    root.apt(&lab, &["upgrade"]);
    assert_eq!(root.installed(), slim);
    mark("unhold");
    root.apt(&lab, &["upgrade"]);
    assert_eq!(root.installed(), original.map(|it| it.replace("-1", "-2")));
}
