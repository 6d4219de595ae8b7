//! `gfxpack perfdb`, and performance and find databases in packages, with dpkg, rpm and tar.

use std::fs;

use crate::distribution::lab::other;
use crate::support::kdb::{GFX906, code_object, write_kdb};
use crate::support::project::{Project, finish, tool};
use gfxpack_model::KernelKey;
use gfxpack_model::package::{Content, PackageFile};
use gfxpack_package::Format;
use serde_json::{Value, json};

const PERF: &str = "gfx906_60.db.txt";
const FIND: &str = "gfx906_60.HIP.fdb.txt";
const PERF_TEXT: &str = "k=ConvAsm1x1U:1,2\nl=ConvAsm3x3U:3\n";
const FIND_TEXT: &str = "k=GemmFwd1x1_0_1:0.5,1024,miopenConvolutionFwdAlgoGEMM\n";

/// A project with a kdb for gfx906 with 60 compute units.
fn project() -> Project {
    let project = Project::new();
    let key = KernelKey::for_source("conv.cl", " -DX=1", "gfx906");
    let kdb = project.path().join("gfx906_60.kdb");
    write_kdb(&kdb, vec![key], &code_object(GFX906, 1));
    project
}

const PACKAGE: [&str; 8] = [
    "package",
    "gfx906_60.kdb",
    "--out",
    "o",
    "--license",
    "MIT",
    "--maintainer",
    "A <a@example.org>",
];

#[test]
fn databases_are_merged_as_miopen_reads_them() {
    let project = Project::new();
    project.write(PERF, PERF_TEXT);
    let user = "gfx906_60.HIP.3_3_0_.udb.txt";
    project.write(user, "m=ConvAsm1x1U:9\nk=ConvAsm3x3U:4;ConvAsm1x1U:8\n");
    fs::create_dir(project.path().join("o")).unwrap();
    let merge = ["perfdb", "merge", PERF, user, "-o", "o", "--json", "-"];
    let run = project.run(&merge).expect_code(0);
    let merged = &run.of_type("perfdb-merged")[0];
    assert_eq!(merged["added"], 1, "{merged}");
    assert_eq!(merged["changed"], 1, "{merged}");
    let expected = "k=ConvAsm1x1U:8;ConvAsm3x3U:4\nl=ConvAsm3x3U:3\nm=ConvAsm1x1U:9\n";
    assert_eq!(project.text(&format!("o/{PERF}")), expected);

    project.write(user, "nothing\n");
    let failed = project.run(&["perfdb", "merge", PERF, user, "-o", "x"]).expect_code(2);
    assert!(failed.stderr.contains("line 1: it has no key"), "{}", failed.stderr);
    assert!(failed.stderr.contains("hint: "), "{}", failed.stderr);
    let other = project.write("other.txt", "");
    project.run(&["perfdb", "merge", other.to_str().unwrap(), "-o", "x"]).expect_code(2);
}

#[test]
fn invalid_lines_of_databases_are_reported_with_their_number() {
    let project = Project::new();
    project.write(PERF, "k=ConvAsm1x1U:1\nnothing\nk=ConvAsm1x1U:2\n");
    let run = project.run(&["perfdb", "lint", PERF]).expect_code(101);
    assert!(run.stdout.contains(&format!("{PERF}:2: error: it has no key")), "{}", run.stdout);
    assert!(run.stdout.contains(&format!("{PERF}:3: error: `k` has")), "{}", run.stdout);
    project.write(PERF, PERF_TEXT);
    let sound = project.run(&["perfdb", "lint", PERF]).expect_code(0);
    assert_eq!(sound.stdout, format!("{PERF}: sound, 2 records\n"));
    project.write(PERF, PERF_TEXT.trim_end());
    let warned = project.run(&["perfdb", "lint", PERF]).expect_code(0);
    assert!(warned.stdout.contains("sound, 2 records, 1 warnings"), "{}", warned.stdout);
    let key = "128-16-16-3x3-64-16-16-2-1x1-1x1-1x1-0-NCHW-FP32-F";
    let find = format!("{key}=A:1,2,miopenConvolutionFwdAlgoGEMM\n");
    for (text, expected) in [
        (find.clone(), None),
        // Two records in one line, and an algorithm that makes MIOpen throw.
        (format!("{}{find}", &find[..60]), Some("were torn")),
        (format!("{}{find}", &find[..30]), Some("were torn")),
        (find.replace("miopenConvolutionFwdAlgoGEMM", "7"), Some("`7` of `A` is no algorithm")),
    ] {
        project.write(FIND, &text);
        let run = project.run(&["perfdb", "lint", FIND]);
        let run = run.expect_code(if expected.is_none() { 0 } else { 101 });
        assert!(run.stdout.contains(expected.unwrap_or("sound")), "{text}: {}", run.stdout);
    }
    project.write(PERF, "nothing\n");
    let missing = project.run(&["perfdb", "lint", "gfx900_64.db.txt"]).expect_code(2);
    assert!(missing.stderr.contains("hint: "), "{}", missing.stderr);
    // One that can't be read keeps none from being checked.
    let both = project.run(&["perfdb", "lint", "gfx900_64.db.txt", PERF]);
    let both = both.expect_code(101);
    assert!(
        both.stdout.contains(PERF) && both.stderr.contains(&format!("failed to verify `{PERF}`"))
    );
    assert!(both.stderr.contains("failed to read `gfx900_64.db.txt`"), "{}", both.stderr);
}

#[test]
fn databases_are_shipped_beside_the_kdb() {
    let project = project();
    project.write(&format!("db/{PERF}"), PERF_TEXT);
    project.write(&format!("db/{FIND}"), FIND_TEXT);
    project.write("db/gfx90a68.db.txt", PERF_TEXT);
    project.write("db/README", "no database");
    project.run(&[&PACKAGE[..], &["--with-perfdb", "db"]].concat()).expect_code(0);
    let named = |end: &str| {
        let found = fs::read_dir(project.path().join("o")).unwrap().flatten();
        let mut paths = found.map(|entry| entry.path().display().to_string());
        paths.find(|path| path.ends_with(end)).expect(end)
    };
    let dir = "opt/rocm/share/miopen/db";
    let (deb, rpm, tar) = (named(".deb"), named(".rpm"), named(".tar.gz"));
    tool("dpkg-deb", &["-x", &deb, "from-deb"], project.path());
    fs::create_dir(project.path().join("from-tar")).unwrap();
    tool("tar", &["-xf", &tar, "-C", "from-tar"], project.path());
    for root in ["from-deb", "from-tar"] {
        assert_eq!(project.text(&format!("{root}/{dir}/{PERF}")), PERF_TEXT);
        assert_eq!(project.text(&format!("{root}/{dir}/{FIND}")), FIND_TEXT);
        assert!(!project.path().join(format!("{root}/{dir}/gfx90a68.db.txt")).exists());
    }
    let sums = tool("dpkg-deb", &["--ctrl-tarfile", &deb], project.path());
    assert!(sums.contains(&format!("{dir}/{FIND}")), "in md5sums");
    let database = project.path().join("rpm-database").display().to_string();
    let listed = tool("rpm", &["-qlp", "--dbpath", &database, &rpm], project.path());
    assert!(listed.lines().any(|line| line == format!("/{dir}/{PERF}")), "{listed}");
    let bill = fs::read_to_string(named(".spdx.json")).unwrap();
    assert!(bill.contains(&format!("./{dir}/{FIND}")), "{bill}");
    let manifest: Value = serde_json::from_str(&project.text("o/manifest.json")).unwrap();
    let file = |name: &str| {
        let path = project.path().join("db").join(name);
        let sum = tool("sha256sum", &[path.to_str().unwrap()], project.path());
        let size = fs::metadata(&path).unwrap().len();
        json!({ "file": name, "size": size, "sha256": sum.split(' ').next() })
    };
    assert_eq!(manifest["targets"][0]["tuning"], json!([file(FIND), file(PERF)]));
    project.run(&["verify", "o"]).expect_code(0);
}

#[test]
fn models_are_listed_and_checked_where_they_are_installed() {
    let project = Project::new();
    project.write("db/gfx906.tn.model", "{}");
    project.write("db/gfx906_metadata.tn.model", "{}");
    project.write("db/gfx90a.tn.model", "{}");
    let mut env = project.command(&["doctor", "--env", "--json", "-"]);
    env.env("MIOPEN_SYSTEM_DB_PATH", project.path().join("db"));
    let env = finish(env).expect_code(0);
    let of_models = |place: &Value| place["database"] == "models";
    let place = env.of_type("database-place").into_iter().find(of_models).unwrap();
    assert_eq!(place["files"].as_array().unwrap().len(), 3, "{place}");

    project.run(&["perfdb", "lint", "db/gfx906.tn.model"]).expect_code(0);
    let lone = project.run(&["perfdb", "lint", "db/gfx90a.tn.model"]).expect_code(0);
    let expected = "can't use it without `gfx90a_metadata.tn.model` in the same directory";
    assert!(lone.stdout.contains(expected), "{}", lone.stdout);

    project.write("db/gfx906.tn.model", "{");
    project.run(&["perfdb", "lint", "db/gfx906.tn.model"]).expect_code(101);
    let doctor = project.run(&["doctor", "--target", "gfx906@60", "--system-dir", "db"]);
    let output = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(output.contains("db/gfx906.tn.model`: it is no JSON"), "{output}");
    assert!(!output.contains("gfx90a.tn.model"), "of this device only: {output}");
}

#[test]
fn files_that_must_not_be_shipped_are_refused() {
    let project = project();
    let refused = |path: &str, text: &str, expected: &str| {
        project.write(path, text);
        let run = project.run(&[&PACKAGE[..], &["--with-perfdb", path]].concat()).expect_code(2);
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
        assert!(!project.path().join("o").exists(), "nothing is written");
    };
    refused("a/gfx906_60.db.txt", "nothing\n", "failed to ship");
    refused("b/gfx906_60.db.txt", "version https://git-lfs.github.com/spec/v1\n", "Git LFS");
    refused("c/gfx906_60.db.txt", "k=ConvAsm1x1U:1\r\n", "carriage return");
    refused("gfx90a68.db.txt", PERF_TEXT, "there is no package for gfx90a");
    refused("notes.txt", "k=A:1\n", "its name is no tuning database's");
    let user = "gfx906_60.HIP.3_3_0_.udb.txt";
    refused(user, PERF_TEXT, &format!("perfdb merge {user} -o {PERF}"));
    project.write("empty/README", "");
    let run = project.run(&[&PACKAGE[..], &["--with-perfdb", "empty"]].concat()).expect_code(2);
    assert!(run.stderr.contains("failed to find a database"), "{}", run.stderr);
}

#[test]
fn another_database_makes_another_package() {
    let project = Project::small();
    project.write(PERF, PERF_TEXT);
    let args = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60", "--out", "o"];
    let more = ["--format", "tar.gz", "--with-perfdb", PERF];
    let dist = || project.run(&[&args[..], &more].concat()).expect_code(0).stderr;
    assert!(dist().contains("packaged "));
    assert!(dist().contains("unchanged miopen"));
    project.write(PERF, "k=ConvAsm1x1U:9\n");
    let again = dist();
    assert!(again.contains("packaged "), "{again}");
    let (name, _) = project.tree("o").into_iter().find(|(name, _)| name.ends_with("gz")).unwrap();
    let text =
        tool("tar", &["-xOf", &format!("o/{name}"), "--wildcards", "*.db.txt"], project.path());
    assert_eq!(text, "k=ConvAsm1x1U:9\n");
}

#[test]
fn a_database_that_was_damaged_before_it_was_packaged_is_found() {
    let project = project();
    let package = |text: &str| {
        let mut spec = other("tuning", "1.0", &format!("/opt/rocm/share/miopen/db/{PERF}"), text);
        let kdb = fs::read(project.path().join("gfx906_60.kdb")).unwrap();
        let path = "/opt/rocm/share/miopen/db/gfx906_60.kdb";
        spec.files.push(PackageFile::readable(path, Content::Bytes(kdb)));
        let written = Format::DEB.write(&spec, project.path(), 1, None).unwrap();
        written.path.display().to_string()
    };
    let deb = package(PERF_TEXT);
    project.run(&["verify", &deb]).expect_code(0);
    let deb = package("nothing\nk=ConvAsm1x1U:1\n");
    let run = project.run(&["verify", &deb]).expect_code(101);
    let expected = format!("`/opt/rocm/share/miopen/db/{PERF}`: line 1: it has no key");
    assert!(run.stdout.contains(&expected), "{}", run.stdout);
}

#[test]
fn heuristic_models_are_shipped_and_checked_like_databases() {
    let project = project();
    let (solvers, metadata) = ("gfx906.tn.model", "gfx906_metadata.tn.model");
    project.write(&format!("db/{solvers}"), r#"{"layers": [1, 2.5]}"#);
    project.write("db/gfx908.tn.model", "{}");
    let package = [&PACKAGE[..], &["--format", "tar.gz", "--with-perfdb", "db"]].concat();
    let run = project.run(&package).expect_code(0);
    assert!(
        run.stderr.contains(&format!("without `{metadata}`, which is missing")),
        "{}",
        run.stderr
    );
    project.write(&format!("db/{metadata}"), "{}");
    let run = project.run(&package).expect_code(0);
    assert!(!run.stderr.contains("which is missing"), "{}", run.stderr);
    let manifest: Value = serde_json::from_str(&project.text("o/manifest.json")).unwrap();
    let shipped = &manifest["targets"][0]["tuning"];
    assert_eq!((&shipped[0]["file"], &shipped[1]["file"]), (&solvers.into(), &metadata.into()));
    assert!(shipped[2].is_null(), "{shipped}");
    project.run(&["verify", "o"]).expect_code(0);
    project.write(&format!("db/{solvers}"), r#"{"layers": [1, 2."#);
    let run = project.run(&package).expect_code(2);
    assert!(run.stderr.contains("it is no JSON"), "{}", run.stderr);
}
