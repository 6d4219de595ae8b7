//! The main job on a small library: real compiler, every language, real
//! packages.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::project::{
    Project, Run, finish, python_reads, started_by, tool, words, workspace,
};
use gfxpack_model::Digest;
use serde_json::{Value, json};

const GFX906: u32 = 0x2f;
const GFX90A: u32 = 0x3f;
const GFX1030: u32 = 0x36;

const TARGETS: [&str; 6] =
    ["--target", "gfx906_60", "--target", "gfx90a@104", "--target", "gfx1030"];

fn dist(project: &Project, more: &[&str]) -> Run {
    let mut arguments = vec!["dist", "--manifest", "kernels.toml"];
    arguments.extend(more);
    project.run(&arguments)
}

#[test]
fn every_target_gets_its_kdb_and_its_packages() {
    let project = Project::small();
    let mut arguments = TARGETS.to_vec();
    arguments.extend(["--out", "out"]);
    let run = dist(&project, &arguments).expect_code(0);
    assert_eq!(run.stdout, "", "stdout is for data");
    let out = project.path().join("out");
    let names: Vec<String> = project.tree("out").into_iter().map(|(name, _)| name).collect();
    let expected = [
        "SHA256SUMS",
        "kdb/gfx1030.kdb",
        "kdb/gfx906_60.kdb",
        "kdb/gfx90a68.kdb",
        "kernels.jsonl",
        "manifest.json",
        "miopen-hip-gfx1030kdb-1.2.3-1.noarch.rpm",
        "miopen-hip-gfx1030kdb-1.2.3-1.spdx.json",
        "miopen-hip-gfx1030kdb-1.2.3-1.tar.gz",
        "miopen-hip-gfx1030kdb_1.2.3-1_all.deb",
        "miopen-hip-gfx906-60kdb-1.2.3-1.noarch.rpm",
        "miopen-hip-gfx906-60kdb-1.2.3-1.spdx.json",
        "miopen-hip-gfx906-60kdb-1.2.3-1.tar.gz",
        "miopen-hip-gfx906-60kdb_1.2.3-1_all.deb",
        "miopen-hip-gfx90a-104kdb-1.2.3-1.noarch.rpm",
        "miopen-hip-gfx90a-104kdb-1.2.3-1.spdx.json",
        "miopen-hip-gfx90a-104kdb-1.2.3-1.tar.gz",
        "miopen-hip-gfx90a-104kdb_1.2.3-1_all.deb",
    ];
    assert_eq!(names, expected);
    tool("sha256sum", &["--check", "--strict", "--quiet", "SHA256SUMS"], &out);
    let summed = fs::read_to_string(out.join("SHA256SUMS")).unwrap().lines().count();
    assert_eq!(summed, names.len() - 1, "every file but the sums themselves is summed");
    for (kdb, number) in
        [("gfx906_60.kdb", GFX906), ("gfx90a68.kdb", GFX90A), ("gfx1030.kdb", GFX1030)]
    {
        let device = kdb.split(['_', '.']).next().unwrap().trim_end_matches("68");
        let keys = python_reads(&out.join("kdb").join(kdb), number);
        let texts: Vec<String> = keys.iter().map(|(name, args)| format!("{name}{args}")).collect();
        let expected = [" -DTYPE=double", " -DTYPE=float"]
            .map(|args| format!("add.cpp.o{args} -mcpu={device}"))
            .into_iter()
            .chain([format!("fill.s.o -Wa,-defsym,VALUE=7 -mcpu={device}")])
            .chain(
                ["2", "3"].map(|n| format!("scale.cl.o -DGROUP=64 -DFACTOR={n} -mcpu={device}")),
            );
        assert_eq!(texts, expected.collect::<Vec<_>>());
    }
    check_manifest(&out);

    // Objects do not depend on compute units.
    let more = ["--target", "gfx906_64,gfx906", "--out", "units", "--json", "-"];
    let run = dist(&project, &more).expect_code(0);
    assert_eq!(run.of_type("build-finished")[0]["compiled"], 0);
    assert_eq!((run.of_type("kdb").len(), run.of_type("package").len()), (2, 6));

    // XNACK is part of the compiler's target, and of names.
    dist(&project, &["--target", "gfx90a:xnack+@104", "--out", "x"]).expect_code(0);
    let kdb = project.path().join("x/kdb/gfx90a_xnack68.kdb");
    assert_eq!(python_reads(&kdb, GFX90A).len(), 5);
    let run = project.run(&["kdb", "verify", "x/kdb/gfx90a_xnack68.kdb"]).expect_code(0);
    assert!(run.stdout.contains("5 kernels for gfx90a:xnack+@104"), "{}", run.stdout);
    assert!(project.path().join("x/miopen-hip-gfx90a-xnack-104kdb_1.2.3-1_all.deb").is_file());
}

fn check_manifest(out: &Path) {
    let text = fs::read_to_string(out.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["format"], 1);
    assert_eq!(manifest["complete"], true);
    let targets = manifest["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 3);
    for target in targets {
        assert_eq!(target["kernels"], 5);
        let compiler = target["compiler"]["identity"].as_str().unwrap();
        assert!(compiler.contains("clang "), "{compiler}");
        let sources = target["sources"].as_array().unwrap();
        assert_eq!(sources.len(), 3);
        assert_eq!(sources[0]["licenses"][0]["license"], "MIT");
        assert_eq!(target["packages"].as_array().unwrap().len(), 3);
        for file in target["packages"].as_array().unwrap().iter().chain([&target["kdb"]]) {
            let path = out.join(file["file"].as_str().unwrap());
            let sum = tool("sha256sum", &[path.to_str().unwrap()], out);
            assert_eq!(sum.split(' ').next(), file["sha256"].as_str());
            assert_eq!(fs::metadata(path).unwrap().len(), file["size"].as_u64().unwrap());
        }
    }
}

/// The same sources deep below another directory, of another time, built by more workers, with
/// another umask, user, language, time zone and day.
#[test]
fn equal_input_gives_equal_bytes_in_any_directory_and_by_any_route() {
    let (first, second) = (Project::small(), Project::small());
    let formats = "--format deb,rpm,tar.gz,tar.xz,tar.zst,wheel,oci,arch --meta gfx9 --jobs";
    let arguments = |jobs, more: &[&'static str]| {
        let targets = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60,gfx90a@104"];
        [&targets[..], &words(formats), &[jobs], more].concat()
    };
    first.run(&arguments("1", &["--out", "o"])).expect_code(0);
    let bytes = first.tree("o");
    assert!(bytes.len() > 3 + 2 + 16, "lists, kdbs, packages, and what is beside them");
    let deep = "another/place";
    for (name, bytes) in second.tree(".") {
        let copy = second.write(&format!("{deep}/{name}"), &String::from_utf8_lossy(&bytes));
        let file = fs::File::options().write(true).open(copy).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
    let mut strange = crate::support::project::command("faketime");
    strange.args(["-f", "+400d"]).args(another_user());
    strange.args(["sh", "-euc", "umask 077; cd \"$0\"; exec \"$@\"", deep]);
    let there = second.command(&arguments("2", &["--out", "../o"]));
    let mut strange = started_by(strange, &there);
    strange
        .env("DONT_FAKE_MONOTONIC", "1")
        .env("TZ", "Pacific/Kiritimati")
        .env("LC_ALL", "tr_TR.UTF-8");
    strange.env("HOME", second.path()).env("USER", "somebody").env("HOSTNAME", "elsewhere");
    finish(strange).expect_code(0);
    let made = second.tree("another/o");
    assert!(bytes == made, "cold, --jobs 2, elsewhere");
    for (name, _) in made {
        let file = second.path().join("another/o").join(&name);
        assert_eq!(fs::metadata(file).unwrap().mode() & 0o077, 0, "{name}: the umask is for all");
    }
    let warm = words(
        "--target gfx90a@104,gfx906@60 --meta gfx9 --format \
         arch,oci,wheel,tar.xz,tar.zst,tar.gz,rpm,deb --out w --json -",
    );
    let finished = &dist(&first, &warm).expect_code(0).of_type("build-finished")[0];
    assert_eq!((&finished["compiled"], &finished["cached"]), (&0.into(), &10.into()));
    assert!(bytes == first.tree("w"), "warm, targets and formats in another order");

    let later = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60", "--format", "deb"];
    let mut later = first.command(&[&later[..], &["--out", "later"]].concat());
    later.env("SOURCE_DATE_EPOCH", "1700000000");
    finish(later).expect_code(0);
    let deb = "later/miopen-hip-gfx906-60kdb_1.2.3-1_all.deb";
    let listed = tool("dpkg-deb", &["-c", deb], first.path());
    assert!(listed.lines().all(|line| line.contains(" 2023-11-1")), "{listed}");
}

/// What makes a program believe that somebody else runs it, where that can be
/// done without losing the right to read files.
fn another_user() -> &'static [&'static str] {
    const UNSHARE: [&str; 4] = ["unshare", "--user", "--map-user=1234", "--map-group=1234"];
    let mut tried = crate::support::project::command(UNSHARE[0]);
    let possible = tried.args(&UNSHARE[1..]).arg("true").output();
    if possible.is_ok_and(|output| output.status.success()) { &UNSHARE } else { &[] }
}

#[test]
fn up_to_date_output_files_are_not_rewritten() {
    let project = Project::small();
    let arguments = ["--target", "gfx906_60", "--out", "o"];
    let again = |more: &[&str]| {
        let run = dist(&project, &[&arguments, more].concat()).expect_code(0);
        run.stderr.lines().filter(|line| line.contains("unchanged ")).count()
    };
    // The kdb, .deb, .rpm and .tar.gz.
    let file = |ending: &str| {
        let names = project.tree("o").into_iter().map(|(name, _)| name);
        project
            .path()
            .join("o")
            .join(names.into_iter().find(|name| name.ends_with(ending)).unwrap())
    };
    assert_eq!(again(&[]), 0);
    let made = project.tree("o");
    let inode = |ending: &str| fs::metadata(file(ending)).unwrap().ino();
    let before = [".kdb", ".deb", ".rpm", ".tar.gz"].map(inode);
    assert_eq!(again(&[]), 4);
    assert_eq!([".kdb", ".deb", ".rpm", ".tar.gz"].map(inode), before, "not even written anew");
    assert!(project.tree("o") == made);

    for ending in [".kdb", ".deb", ".rpm", ".tar.gz"] {
        let mut bytes = fs::read(file(ending)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file(ending), bytes).unwrap();
        assert_eq!(again(&[]), 3, "{ending} was damaged");
        assert!(project.tree("o") == made);
        fs::remove_file(file(ending)).unwrap();
        assert_eq!(again(&[]), 3, "{ending} was removed");
        assert!(project.tree("o") == made);
    }
    assert_eq!(again(&["--maintainer", "A <a@example.org>"]), 1, "the kdb");
    assert_eq!(again(&[]), 1);
    assert!(project.tree("o") == made);
    assert_eq!(again(&["--blob", "bz2"]), 0);
    assert_eq!(again(&[]), 0);
    project.write("include/step.h", "#define STEP 5.0f\n");
    assert_eq!(again(&[]), 0);
    assert!(project.tree("o") != made);
    fs::remove_dir_all(project.path().join("o")).unwrap();
    assert_eq!(again(&[]), 0);
}

#[test]
fn a_change_that_file_times_hide_is_found_by_reading_the_file() {
    let project = Project::small();
    let arguments = ["--target", "gfx906_60", "--out", "o", "--format", "tar.gz"];
    dist(&project, &arguments).expect_code(0);
    let (made, kdb) = (project.tree("o"), project.path().join("o/kdb/gfx906_60.kdb"));
    let modified = fs::metadata(&kdb).unwrap().modified().unwrap();
    let damage = || {
        let mut bytes = fs::read(&kdb).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&kdb, bytes).unwrap();
        fs::File::options().write(true).open(&kdb).unwrap().set_modified(modified).unwrap();
        assert!(project.tree("o") != made);
    };

    // The time of the change can't be put back by a program.
    damage();
    dist(&project, &arguments).expect_code(0);
    assert!(project.tree("o") == made);

    // By other means it can; then the file looks like the one that was digested.
    let sha256 = Digest::of(&fs::read(&kdb).unwrap()).to_string();
    damage();
    let remembered = project.path().join("cache/file-digests.json");
    let text = fs::read(&remembered).unwrap_or_else(|_| b"{}".to_vec());
    let mut digests: Value = serde_json::from_slice(&text).unwrap();
    let meta = fs::metadata(&kdb).unwrap();
    digests[kdb.to_str().unwrap()] = json!([{
        "device": meta.dev(),
        "inode": meta.ino(),
        "size": meta.size(),
        "modified": [meta.mtime(), meta.mtime_nsec()],
        "changed": [meta.ctime(), meta.ctime_nsec()],
    }, sha256]);
    fs::write(&remembered, digests.to_string()).unwrap();
    let damaged = project.tree("o");
    dist(&project, &arguments).expect_code(0);
    assert!(project.tree("o") == damaged, "its identity is believed");

    let found = |run: Run| {
        let output = format!("{}{}", run.stdout, run.stderr);
        assert!(output.contains("gfx906_60.kdb"), "{output}");
    };
    found(project.run(&["verify", "o"]).expect_code(101));
    found(project.run(&["kdb", "verify", "o/kdb/gfx906_60.kdb"]).expect_code(101));
    let package = ["package", "o/kdb/gfx906_60.kdb", "--out", "p", "--format", "tar.gz"];
    let license = ["--license", "MIT", "--copyright", "Nobody", "--package-version", "1"];
    let package = [&package[..], &license, &["--verify-all"]].concat();
    found(project.run(&package).expect_code(101));
    dist(&project, &[&arguments[..], &["--verify-all"]].concat()).expect_code(0);
    assert!(project.tree("o") == made);
}

/// The example of a manifest, for programs instead of MIOpen.
#[test]
fn ones_own_kernels_are_installed_where_the_runtime_looks() {
    let project = Project::new();
    let examples = workspace().join("packaging/examples");
    tool("cp", &["-r", examples.to_str().unwrap(), "examples"], project.path());
    let manifest = project.text("examples/kernels.toml");
    let manifest = manifest.replace("[library]\n", "[library]\nreader = \"runtime\"\n");
    project.write("examples/kernels.toml", &manifest);
    let dist = ["dist", "--manifest", "examples/kernels.toml", "--target", "gfx906_60"];
    project.run(&[&dist[..], &["--format", "tar.gz", "--out", "o"]].concat()).expect_code(0);
    tool("tar", &["-xf", "o/example-kernels-gfx906-60-1.0-1.tar.gz"], project.path());
    let installed = "opt/rocm/share/example-kernels/db/gfx906_60.kdb";
    let keys = python_reads(&project.path().join(installed), GFX906);
    for language in [".cpp.o", ".cl.o", ".s.o"] {
        assert!(keys.iter().any(|(name, _)| name.ends_with(language)), "{keys:?}");
    }
    // gfx906 has no matrix cores.
    assert!(keys.iter().all(|(name, _)| name != "matmul.cpp.o"), "{keys:?}");
}

#[test]
fn a_dry_run_touches_nothing() {
    let project = Project::small();
    let run = dist(&project, &["--target", "gfx906_60", "--out", "o", "--dry-run"]).expect_code(0);
    assert!(run.stdout.contains("gfx906_60.kdb"), "{}", run.stdout);
    assert!(run.stdout.contains("5 compile jobs: 0 in the cache, 5 to run"), "{}", run.stdout);
    assert!(!project.path().join("o").exists());
    let json = dist(&project, &["--target", "gfx906_60", "--out", "o", "-n", "--json", "-"]);
    let plan = &json.expect_code(0).of_type("plan")[0]["plan"];
    assert_eq!(plan["jobs"].as_array().unwrap().len(), 5);
    assert_eq!(plan["kdbs"][0]["rows"].as_array().unwrap().len(), 5);
}

#[test]
fn kdbs_are_listed_shown_and_packaged_again() {
    let project = Project::small();
    dist(&project, &["--target", "gfx906_60", "--out", "o", "--blob", "raw"]).expect_code(0);
    let kdb = "o/kdb/gfx906_60.kdb";
    let info = project.run(&["kdb", "info", kdb, "--json", "-"]).expect_code(0);
    let info = &info.of_type("kdb-info")[0];
    assert_eq!(info["rows"], 5);
    assert_eq!(info["devices"]["gfx906"], 5);
    let keys = project.run(&["kdb", "list", kdb, "--keys", "--filter", "scale"]).expect_code(0);
    assert_eq!(keys.stdout.lines().count(), 2);
    let raw = project.tree("o/kdb");
    for (blob, out, same) in [("auto", "a", true), ("bz2", "b", false)] {
        dist(&project, &["--target", "gfx906_60", "--out", out, "--blob", blob]).expect_code(0);
        assert_eq!(project.tree(&format!("{out}/kdb")) == raw, same, "{blob}");
    }
    // What `list --keys` prints is what `dist --keys` reads.
    project.write("keys.jsonl", &keys.stdout);
    let again =
        words("dist --keys keys.jsonl --source-dir . --license MIT --target gfx906_60 --out k");
    project.run(&again).expect_code(0);
    let line: Value = serde_json::from_str(keys.stdout.lines().next().unwrap()).unwrap();
    let (name, args) =
        (line["kernel_name"].as_str().unwrap(), line["kernel_args"].as_str().unwrap());
    project.run(&["kdb", "get", kdb, name, args, "--out", "a.o"]).expect_code(0);
    project.run(&["kdb", "get", "k/kdb/gfx906_60.kdb", name, args, "--out", "b.o"]).expect_code(0);
    let piped = project.run(&["kdb", "get", kdb, name, args, "--out", "-"]).expect_code(0);
    assert!(piped.stdout.contains("ELF") && !project.path().join("-").exists());
    let object = fs::read(project.path().join("a.o")).unwrap();
    assert!(object.starts_with(b"\x7fELF"));
    assert_eq!(object.len(), fs::read(project.path().join("b.o")).unwrap().len());
    let missing = project.run(&["kdb", "get", kdb, name, "-mcpu=gfx906"]).expect_code(3);
    let expected =
        format!("failed to find `{name}` with the arguments `-mcpu=gfx906` in `{kdb}`\n");
    assert!(missing.stderr.contains(&expected), "{}", missing.stderr);
    assert!(missing.stderr.contains("hint: keys are compared byte for byte"), "{}", missing.stderr);
    let packaged = ["package", kdb, "--out", "p", "--license", "MIT", "--format", "deb"];
    project.run(&packaged).expect_code(0);
    let run = project.run(&[&packaged[..], &["--json", "-"]].concat()).expect_code(0);
    let package = &run.of_type("package")[0];
    assert_eq!(package["target"], "gfx906@60");
    assert_eq!(package["file"], "p/miopen-hip-gfx906-60kdb_1.2.3-1_all.deb");
    let deb = "p/miopen-hip-gfx906-60kdb_1.2.3-1_all.deb";
    let contents = tool("dpkg-deb", &["-c", deb], project.path());
    assert!(contents.contains("./opt/rocm/share/miopen/db/gfx906_60.kdb"), "{contents}");
    fs::rename(project.path().join(kdb), project.path().join("gfx1030.kdb")).unwrap();
    let wrong = project.run(&["package", "gfx1030.kdb", "--out", "q"]).expect_code(101);
    assert!(wrong.stderr.contains("gfx906"), "{}", wrong.stderr);
    assert!(!project.path().join("q").exists());
}

#[test]
fn targets_built_one_after_the_other_are_listed_together() {
    let (apart, together) = (Project::small(), Project::small());
    dist(&together, &["--target", "gfx906_60,gfx1030", "--out", "o"]).expect_code(0);
    dist(&apart, &["--target", "gfx1030", "--out", "o"]).expect_code(0);
    dist(&apart, &["--target", "gfx906_60", "--out", "./x/../o"]).expect_code(0);
    assert!(apart.tree("o") == together.tree("o"));
    // A damaged record is written anew.
    let record = apart.path().join("o/manifest.json");
    let text = fs::read(&record).unwrap();
    fs::write(&record, &text[..text.len() / 2]).unwrap();
    dist(&apart, &["--target", "gfx906_60,gfx1030", "--out", "o"]).expect_code(0);
    assert!(apart.tree("o") == together.tree("o"));
    // Targets whose kdbs have one name have one entry.
    for target in ["gfx906:sramecc+@60", "gfx906@60"] {
        let build = ["build", "--manifest", "kernels.toml", "--out", "s", "--target", target];
        together.run(&build).expect_code(0);
        let manifest: Value = serde_json::from_str(&together.text("s/manifest.json")).unwrap();
        let entries = manifest["targets"].as_array().unwrap();
        assert_eq!((entries.len(), &entries[0]["target"]), (1, &json!(target)));
    }
    // A package of an earlier version does not stay beside its successor.
    let newer = ["--target", "gfx906_60", "--out", "o", "--package-version", "2.0"];
    dist(&apart, &newer).expect_code(0);
    let names: Vec<String> = apart.tree("o").into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().any(|name| name == "miopen-hip-gfx906-60kdb_2.0-1_all.deb"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("miopen-hip-gfx906-60kdb_1.2.3")),
        "{names:?}"
    );
    assert!(names.iter().any(|name| name.starts_with("miopen-hip-gfx1030kdb_1.2.3")), "{names:?}");
    tool("sha256sum", &["--check", "--strict", "--quiet", "SHA256SUMS"], &apart.path().join("o"));
}

#[test]
fn a_closed_output_pipe_stops_no_build_and_is_reported() {
    let project = Project::small();
    let shell = |script: &str| finish(project.script(script, &[]));
    let build = "\"$1\" build --manifest kernels.toml --target gfx906 --out o --json -";
    let run = shell(&format!("{build} | head -n 0; exit ${{PIPESTATUS[0]}}")).expect_code(1);
    assert!(run.stdout.is_empty());
    assert!(project.path().join("o/kdb/gfx906.kdb").is_file(), "the build went on");
    shell("\"$1\" kdb list o/kdb/gfx906.kdb | head -n 1; exit ${PIPESTATUS[0]}").expect_code(0);
    let full = shell("\"$1\" kdb list o/kdb/gfx906.kdb > /dev/full").expect_code(1);
    assert!(full.stderr.contains("failed to write `stdout`"), "{}", full.stderr);
}
