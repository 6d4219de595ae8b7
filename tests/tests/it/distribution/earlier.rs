//! Packages that already exist in directories of packages and in repositories.

use std::fs;
use std::thread;

use crate::support::project::{command, finish};
use serde_json::Value;

use super::lab::{Lab, files, ok};

/// The names of a directory's files of that ending.
fn names(lab: &Lab, dir: &str, ending: &str) -> Vec<String> {
    let files = files(&lab.path(dir), ending);
    files.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

fn sums_hold(lab: &Lab, dir: &str) -> String {
    ok(command("sha256sum").args(["--strict", "-c", "SHA256SUMS"]).current_dir(lab.path(dir)))
}

const DEB: &str = "miopen-hip-gfx906kdb_1.2.3-1_all.deb";
const RPM: &str = "miopen-hip-gfx906kdb-1.2.3-1.noarch.rpm";

#[test]
fn packages_are_kept_while_their_kdb_is_the_same() {
    let lab = Lab::new();
    lab.dist("out", &["--target", "gfx906", "--meta", "gfx9"]);
    // The kdb's manifest says the version, whatever packages are made of it.
    let package = ["package", "out/kdb/gfx906.kdb", "--out", "out", "--format", "tar.zst"];
    lab.run(&package).expect_code(0);
    let build = ["build", "--manifest", "kernels.toml", "--out", "out", "--target", "gfx906"];
    lab.run(&build).expect_code(0);
    assert_eq!(
        names(&lab, "out", ".deb"),
        ["miopen-hip-gfx906kdb_1.2.3-1_all.deb", "miopen-hip-gfx9kdb_1.2.3-1_all.deb"]
    );
    assert_eq!(names(&lab, "out", ".rpm").len(), 2);
    assert_eq!(names(&lab, "out", ".tar.zst"), ["miopen-hip-gfx906kdb-1.2.3-1.tar.zst"]);
    let held = sums_hold(&lab, "out");
    for file in [
        DEB,
        RPM,
        "miopen-hip-gfx906kdb-1.2.3-1.tar.zst",
        "miopen-hip-gfx906kdb_1.2.3-1_all.deb.asc",
    ] {
        assert!(held.contains(&format!("{file}: OK")), "{file}: {held}");
    }

    // Another version takes the place of the old one, of its format alone.
    let next = ["package", "out/kdb/gfx906.kdb", "--out", "out", "--format", "deb"];
    let run = lab.run(&[&next[..], &["--package-version", "2"]].concat()).expect_code(0);
    assert!(run.stderr.contains(&format!("removed {DEB}, which is out of date")), "{}", run.stderr);
    assert_eq!(names(&lab, "out", ".deb"), ["miopen-hip-gfx906kdb_2-1_all.deb"]);
    assert!(!lab.path(&format!("out/{DEB}.asc")).exists());
    assert!(lab.path("out").join(RPM).exists());
    sums_hold(&lab, "out");

    // Of another kdb, nothing of it is left.
    lab.project.write("include/step.h", "#define STEP 4.0f\n");
    let run = lab.run(&[&build[..], &["-q"]].concat()).expect_code(0);
    assert!(
        run.stderr.contains(&format!("warning: removed {RPM}, which is out of date")),
        "{}",
        run.stderr
    );
    assert_eq!(names(&lab, "out", ".deb"), Vec::<String>::new());
    assert_eq!(names(&lab, "out", ".rpm"), Vec::<String>::new());
    let left =
        ["kdb/gfx906.kdb", "kernels.jsonl", "manifest.json"].map(|file| format!("{file}: OK\n"));
    assert_eq!(sums_hold(&lab, "out"), left.concat());
}

#[test]
fn packages_of_other_targets_and_families_are_kept_in_the_directory() {
    let lab = Lab::new();
    let dist = |target: &str, more: &[&str]| {
        let args = ["dist", "--manifest", "kernels.toml", "--out", "out", "--target", target];
        lab.run(&[&args[..], more].concat()).expect_code(0)
    };
    let deb = |name: &str| format!("miopen-hip-{name}kdb_1.2.3-1_all.deb");
    dist("gfx906", &["--meta", "gfx9", "--format", "deb,tar.gz"]);
    dist("gfx1030", &["--meta", "gfx10,all", "--format", "deb"]);
    // Of a kdb that has not changed.
    let package = ["package", "out/kdb/gfx906.kdb", "--out", "out", "--format", "deb"];
    let stderr = lab.run(&package).expect_code(0).stderr;
    assert!(!stderr.contains("removed"), "{stderr}");
    let all = ["gfx10", "gfx1030", "gfx906", "gfx9", "all"].map(deb);
    let there = names(&lab, "out", ".deb");
    assert!(all.iter().all(|name| there.contains(name)) && there.len() == 5, "{there:?}");

    // What somebody took away is not listed any more, and nothing else is lost.
    fs::remove_file(lab.path("out/miopen-hip-gfx906kdb-1.2.3-1.tar.gz")).expect("there");
    fs::remove_dir_all(lab.path("out/kdb")).expect("there");
    dist("gfx908", &["--format", "deb"]);
    let held = sums_hold(&lab, "out");
    for name in all.iter().chain([&deb("gfx908")]) {
        assert!(held.contains(&format!("{name}: OK")), "{name}: {held}");
        let bill = name.replace("kdb_", "kdb-").replace("_all.deb", ".spdx.json");
        assert!(held.contains(&format!("{bill}: OK")), "{bill}: {held}");
    }
    let manifest = fs::read_to_string(lab.path("out/manifest.json")).expect("there");
    assert!(!manifest.contains(".tar.gz") && !manifest.contains("kdb/gfx906.kdb"), "{manifest}");

    // A family goes with the packages that it depends on.
    let more = ["--format", "deb", "--meta", "all", "--package-version", "2"];
    let run = dist("gfx906", &[&more[..], &["--json", "-"]].concat());
    let file = |message: &Value| message["file"].as_str().expect("a path").to_owned();
    let mut removed: Vec<String> = run.of_type("package-removed").iter().map(file).collect();
    removed.sort();
    assert_eq!(removed, ["all", "gfx906", "gfx9"].map(|name| format!("out/{}", deb(name))));
    assert_eq!(
        names(&lab, "out", ".deb"),
        [
            "miopen-hip-allkdb_2-1_all.deb",
            "miopen-hip-gfx1030kdb_1.2.3-1_all.deb",
            "miopen-hip-gfx10kdb_1.2.3-1_all.deb",
            "miopen-hip-gfx906kdb_2-1_all.deb",
            "miopen-hip-gfx908kdb_1.2.3-1_all.deb",
        ]
    );
    sums_hold(&lab, "out");

    // Manifests of before that was written there do not say what a family is of.
    let manifest = lab.path("out/manifest.json");
    let mut older: Value =
        serde_json::from_slice(&fs::read(&manifest).expect("there")).expect("JSON");
    for family in older["families"].as_array_mut().expect("families") {
        assert!(family.as_object_mut().expect("a package").remove("depends").is_some());
    }
    fs::write(&manifest, older.to_string()).expect("written");
    dist("gfx1030", &["--format", "deb", "--package-version", "2"]);
    let there = names(&lab, "out", ".deb");
    assert!(there.contains(&deb("gfx10")) && !there.contains(&deb("gfx1030")), "{there:?}");
}

/// The archives that the only bill of material of a directory names.
fn billed(lab: &Lab, dir: &str) -> Vec<String> {
    let bills = files(&lab.path(dir), ".spdx.json");
    let [bill] = &bills[..] else { panic!("{bills:?}") };
    let bill: Value = serde_json::from_slice(&fs::read(bill).expect("there")).expect("JSON");
    let packages = bill["packages"].as_array().expect("packages").iter();
    packages.filter_map(|one| one["packageFileName"].as_str().map(str::to_owned)).collect()
}

#[test]
fn the_sbom_covers_all_packages_in_the_directory() {
    let lab = Lab::new();
    let database = "gfx906_60.db.txt";
    lab.project.write(database, "k=ConvAsm1x1U:1\n");
    let dist = |more: &[&str]| {
        let args = ["dist", "--manifest", "kernels.toml", "--out", "out", "--target", "gfx906_60"];
        lab.run(&[&args[..], more].concat()).expect_code(0)
    };
    let bytes = || {
        let bill = files(&lab.path("out"), ".spdx.json").remove(0);
        let manifest = lab.path("out/manifest.json");
        [bill, manifest].map(|file| fs::read_to_string(file).expect("there"))
    };
    dist(&["--format", "deb,rpm,tar.zst,tar.xz", "--with-perfdb", database]);
    let before = bytes();
    dist(&["--format", "tar.xz", "--with-perfdb", database]);
    assert_eq!(billed(&lab, "out").len(), 4);
    assert_eq!(bytes(), before, "step by step as at once");

    // One name and version is one content.
    let stderr = dist(&["--format", "deb"]).stderr;
    assert!(stderr.contains("removed miopen-hip-gfx906-60kdb-1.2.3-1.noarch.rpm"), "{stderr}");
    assert_eq!(billed(&lab, "out").len(), 1);
    let before = bytes()[0].clone();
    dist(&["--format", "rpm"]);
    fs::remove_file(files(&lab.path("out"), ".rpm").remove(0)).expect("there");
    let build = ["build", "--manifest", "kernels.toml", "--out", "out", "--target", "gfx906_60"];
    lab.run(&build).expect_code(0);
    assert_eq!(bytes()[0], before, "as if it had never been there");
    dist(&["--format", "rpm"]);
    dist(&["--format", "deb", "--layout", "fhs"]);
    assert_eq!(billed(&lab, "out"), ["miopen-hip-gfx906-60kdb_1.2.3-1_all.deb"]);
    sums_hold(&lab, "out");

    thread::scope(|scope| {
        for format in ["deb", "rpm", "tar.gz", "tar.xz", "tar.zst"] {
            let lab = &lab;
            scope.spawn(move || {
                let kdb = "out/kdb/gfx906_60.kdb";
                lab.run(&["package", kdb, "--out", "all", "--format", format]).expect_code(0);
            });
        }
    });
    assert_eq!(billed(&lab, "all").len(), 5);
    sums_hold(&lab, "all");
}

#[test]
fn packages_of_concurrent_runs_in_one_directory_are_all_listed() {
    let lab = Lab::new();
    let targets = ["gfx906", "gfx908", "gfx90a", "gfx1030"];
    let build = ["build", "--manifest", "kernels.toml", "--out", "built", "--target"];
    lab.run(&[&build[..], &[&targets.join(",")]].concat()).expect_code(0);
    thread::scope(|scope| {
        for target in targets {
            let lab = &lab;
            scope.spawn(move || {
                let kdb = format!("built/kdb/{target}.kdb");
                let package = ["package", &kdb, "--out", "out", "--format", "deb,rpm"];
                lab.run(&package).expect_code(0);
            });
        }
    });
    let held = sums_hold(&lab, "out");
    for name in [names(&lab, "out", ".deb"), names(&lab, "out", ".rpm")].concat() {
        assert!(held.contains(&format!("{name}: OK")), "{name}: {held}");
    }
    assert_eq!(held.lines().count(), 4 * 3 + 1, "packages, bills of material, the manifest");
}

#[test]
fn two_packages_of_one_name_are_refused_before_anything_is_built() {
    let lab = Lab::new();
    let args = ["dist", "--manifest", "kernels.toml", "--out", "out", "--target", "gfx908,gfx906"];
    let run = lab.run(&[&args[..], &["--meta", "gfx908"]].concat()).expect_code(2);
    let expected = "failed to name the packages: two would be `miopen-hip-gfx908kdb`\nhint: ";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    assert!(!lab.path("out").exists());
}

#[test]
fn a_repository_lists_its_packages_and_reports_other_files() {
    let lab = Lab::new();
    lab.dist("packages", &["--target", "gfx906"]);
    for name in ["junk_1_all.deb", "junk-1-1.noarch.rpm"] {
        fs::write(lab.path("packages").join(name), "junk").expect("written");
    }
    let run = lab.run(&["repo", "packages"]).expect_code(0);
    assert!(run.stderr.contains("indexed 1 .deb and 1 .rpm packages"), "{}", run.stderr);
    for name in ["junk_1_all.deb", "junk-1-1.noarch.rpm"] {
        let expected = format!("/{name}` is left out: it can't be read as a package");
        assert!(run.stderr.contains(&expected), "{}", run.stderr);
    }
    // apt keeps an index with a later date.
    let mut before = lab.project.command(&["repo", "packages"]);
    before.env("SOURCE_DATE_EPOCH", "1000000000");
    let stderr = finish(before).expect_code(0).stderr;
    assert!(stderr.contains("earlier date than the one before"), "{stderr}");
    // A killed createrepo_c left this, and others come at the same time.
    fs::create_dir(lab.path("packages/.repodata")).expect("made");
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| lab.run(&["repo", "packages"]).expect_code(0));
        }
    });
    assert!(!lab.path("packages/.repodata").exists());
    for ending in [".deb", ".rpm"] {
        files(&lab.path("packages"), ending).iter().for_each(|file| fs::remove_file(file).unwrap());
    }
    lab.run(&["repo", "packages"]).expect_code(0);
    let index = lab.path("packages/dists/stable/main/binary-all/Packages");
    assert_eq!(fs::read_to_string(index).expect("there"), "");
}
