//! What becomes of packages that lie in a directory already, in directories
//! of packages and in repositories.

use std::fs;
use std::thread;

use gfxpack_tests::project::command;

use crate::lab::{Lab, files, ok};

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
fn packages_stay_while_their_kdb_is_the_same() {
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
    let run = lab.run(&build).expect_code(0);
    assert!(run.stderr.contains(&format!("removed {RPM}, which is out of date")), "{}", run.stderr);
    assert_eq!(names(&lab, "out", ".deb"), Vec::<String>::new());
    assert_eq!(names(&lab, "out", ".rpm"), Vec::<String>::new());
    assert_eq!(sums_hold(&lab, "out"), "kdb/gfx906.kdb: OK\nmanifest.json: OK\n");
}

#[test]
fn runs_at_once_in_one_directory_all_stay_listed() {
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
    let words = ["dist", "--manifest", "kernels.toml", "--out", "out", "--target", "gfx908,gfx906"];
    let run = lab.run(&[&words[..], &["--meta", "gfx908"]].concat()).expect_code(2);
    let told = "failed to name the packages: two would be `miopen-hip-gfx908kdb`\nhint: ";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    assert!(!lab.path("out").exists());
}

#[test]
fn a_repository_lists_what_there_is_and_tells_what_is_none() {
    let lab = Lab::new();
    lab.dist("packages", &["--target", "gfx906"]);
    for name in ["junk_1_all.deb", "junk-1-1.noarch.rpm"] {
        fs::write(lab.path("packages").join(name), "junk").expect("written");
    }
    let run = lab.run(&["repo", "packages"]).expect_code(0);
    assert!(run.stderr.contains("indexed 1 .deb and 1 .rpm packages"), "{}", run.stderr);
    for name in ["junk_1_all.deb", "junk-1-1.noarch.rpm"] {
        let told = format!("/{name}` is left out: it can't be read as a package");
        assert!(run.stderr.contains(&told), "{}", run.stderr);
    }
    for ending in [".deb", ".rpm"] {
        files(&lab.path("packages"), ending).iter().for_each(|file| fs::remove_file(file).unwrap());
    }
    lab.run(&["repo", "packages"]).expect_code(0);
    let index = lab.path("packages/dists/stable/main/binary-all/Packages");
    assert_eq!(fs::read_to_string(index).expect("there"), "");
}
