//! The whole built-in kernel library, with the real hipcc: the main use, checked by independent
//! readers and package managers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gfxpack_tests::project::{Project, python_reads, tool, workspace};

const GFX906: u32 = 0x2f;
const DEB: &str = "o/gfxpack-kernels-gfx906-60_1.0.0-1_all.deb";
const RPM: &str = "o/gfxpack-kernels-gfx906-60-1.0.0-1.noarch.rpm";
const TARBALL: &str = "o/gfxpack-kernels-gfx906-60-1.0.0-1.tar.gz";
const INSTALLED: &str = "opt/rocm/share/gfxpack-kernels/db/gfx906_60.kdb";

/// One test, since compiling the library is the long part of it.
#[test]
fn the_built_in_library_becomes_packages_that_install() {
    let manifest = workspace().join("packaging/kernels/kernels.toml");
    let manifest = manifest.to_str().expect("a plain path");
    let project = Project::new();
    let run = project.run(&[
        "dist",
        "--manifest",
        manifest,
        "--target",
        "gfx906_60",
        "--out",
        "o",
        "--message-format",
        "json",
    ]);
    let run = run.expect_code(0);
    let kernels = run.of_type("kdb")[0]["kernels"].as_u64().unwrap();
    assert!(kernels >= 250, "{kernels}");

    let keys = python_reads(&project.path().join("o/kdb/gfx906_60.kdb"), GFX906);
    assert_eq!(keys.len() as u64, kernels);
    let sources: BTreeSet<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
    assert!(sources.len() >= 20, "{sources:?}");
    for language in [".cpp.o", ".cl.o", ".s.o"] {
        assert!(sources.iter().any(|name| name.ends_with(language)), "no {language}");
    }
    let check = ["o/kdb/gfx906_60.kdb", "pragma integrity_check"];
    assert_eq!(tool("sqlite3", &check, project.path()), "ok\n");
    tool("sha256sum", &["--check", "--strict", "--quiet", "SHA256SUMS"], &project.path().join("o"));
    project.run(&["kdb", "verify", "o/kdb/gfx906_60.kdb"]).expect_code(0);

    // From a copy of the library elsewhere, warm, one worker: the same bytes.
    let copy = project.path().join("elsewhere/kernels");
    copy_tree(&workspace().join("packaging/kernels"), &copy);
    let warm = project.run(&[
        "dist",
        "--manifest",
        "elsewhere/kernels/kernels.toml",
        "--target",
        "gfx906_60",
        "--out",
        "w",
        "--jobs",
        "1",
        "--message-format",
        "json",
    ]);
    let warm = warm.expect_code(0);
    assert_eq!(warm.of_type("build-finished")[0]["compiled"], 0, "nothing is compiled twice");
    assert!(project.tree("o") == project.tree("w"));

    tool("lintian", &["--fail-on", "error,warning", DEB], project.path());
    install_deb(&project);
    install_rpm(&project);
    install_tarball(&project);
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[track_caller]
fn assert_installed(project: &Project, root: &str, installed: bool) {
    let path = project.path().join(root).join(INSTALLED);
    assert_eq!(path.exists(), installed);
    if installed {
        let built = fs::read(project.path().join("o/kdb/gfx906_60.kdb")).unwrap();
        assert!(fs::read(path).unwrap() == built, "installed as built");
    }
}

/// dpkg and apt in a root of their own.
fn install_deb(project: &Project) {
    let dir = project.path();
    for part in [
        "var/lib/dpkg/updates",
        "var/lib/dpkg/info",
        "var/lib/apt/lists/partial",
        "var/cache/apt/archives/partial",
        "etc/apt/apt.conf.d",
        "etc/apt/preferences.d",
        "var/log/apt",
    ] {
        fs::create_dir_all(dir.join("deb-root").join(part)).unwrap();
    }
    for file in ["var/lib/dpkg/status", "var/lib/dpkg/available", "etc/apt/sources.list"] {
        fs::write(dir.join("deb-root").join(file), "").unwrap();
    }
    let dpkg = |arguments: &[&str]| tool("dpkg", &[&["--root=deb-root"], arguments].concat(), dir);
    dpkg(&["--install", DEB]);
    assert_installed(project, "deb-root", true);
    assert_eq!(dpkg(&["--verify", "gfxpack-kernels-gfx906-60"]), "", "every file is as packaged");
    dpkg(&["--purge", "gfxpack-kernels-gfx906-60"]);
    assert_installed(project, "deb-root", false);

    let root = dir.join("deb-root");
    let root = root.to_str().unwrap();
    let options = [
        format!("Dir={root}"),
        format!("Dir::State::status={root}/var/lib/dpkg/status"),
        format!("DPkg::Options::=--root={root}"),
        "APT::Sandbox::User=root".to_owned(),
        "Debug::NoLocking=true".to_owned(),
    ];
    let apt = |arguments: &[&str]| {
        let mut args: Vec<&str> =
            options.iter().flat_map(|option| ["-o", option.as_str()]).collect();
        args.extend(arguments);
        tool("apt-get", &args, dir)
    };
    let path = format!("./{DEB}");
    apt(&["install", "--yes", &path]);
    assert_installed(project, "deb-root", true);
    apt(&["remove", "--yes", "gfxpack-kernels-gfx906-60"]);
    assert_installed(project, "deb-root", false);
}

fn install_rpm(project: &Project) {
    let dir = project.path();
    let root = dir.join("rpm-root");
    fs::create_dir_all(&root).unwrap();
    let root = root.to_str().unwrap();
    let rpm = |arguments: &[&str]| tool("rpm", &[&["--root", root], arguments].concat(), dir);
    let checked = tool("rpm", &["--checksig", RPM], dir);
    assert!(checked.contains("digests OK"), "{checked}");
    rpm(&["--initdb"]);
    rpm(&["--install", dir.join(RPM).to_str().unwrap()]);
    assert_installed(project, "rpm-root", true);
    assert_eq!(rpm(&["--verify", "gfxpack-kernels-gfx906-60"]), "", "every file is as packaged");
    rpm(&["--erase", "gfxpack-kernels-gfx906-60"]);
    assert_installed(project, "rpm-root", false);
}

fn install_tarball(project: &Project) {
    fs::create_dir(project.path().join("tar-root")).unwrap();
    tool("tar", &["-C", "tar-root", "-xf", TARBALL], project.path());
    assert_installed(project, "tar-root", true);
}
