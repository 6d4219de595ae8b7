//! Faults of shards: each succeeds or reports the problem, nothing is lost, and nothing is compiled
//! twice.

use std::fs;

use crate::support::gate::Gate;
use crate::support::project::{Project, tool};

use super::lab::{faulty, finished, merge, missing, pipe, plan, shard, shard_arguments, started};

/// Runs three shards, and counts what they had compiled.
fn run_three(project: &Project) -> usize {
    let run = |index| shard(project, &format!("{index}/3"), "s", &[]).expect_code(0);
    (1..=3).map(run).map(|run| started(&run)).sum()
}

/// What is wrong with the shards is found when they are merged, which makes nothing then.
#[test]
fn shards_that_can_not_be_merged_are_named() {
    let project = faulty(&[""; 4]);
    assert_eq!(run_three(&project), 4);
    let refused = |dirs: &[&str], code: i32, expected: &[&str]| {
        let run = merge(&project, dirs, &[]).expect_code(code);
        for text in expected {
            assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
        }
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
        assert!(!project.path().join("merged/kdb/gfx906_60.kdb").exists());
    };
    let copy = |name: &str| {
        fs::create_dir_all(project.path().join("t")).unwrap();
        fs::copy(project.path().join("s").join(name), project.path().join("t").join(name)).unwrap();
    };
    copy("shard-2-of-3.manifest");
    refused(&["s", "t"], 2, &["shard 2/3 twice", "s/shard-2-of-3", "t/shard-2-of-3"]);
    refused(&["t"], 2, &["2 of 3 shards: 1,3"]);
    let text = project.text("s/shard-2-of-3.manifest");
    project.write("t/shard-2-of-3.manifest", &text[..text.len() - 30]);
    refused(&["t"], 2, &["t/shard-2-of-3", "cut off"]);
    fs::remove_file(project.path().join("t/shard-2-of-3.manifest")).unwrap();
    refused(&["t"], 2, &["find a shard"]);
    refused(&["nowhere"], 2, &["nowhere"]);

    // A shard as another machine might have made it, of other headers.
    let of_shard = |number: u32| {
        let text = project.text(&format!("s/shard-{number}-of-3.manifest"));
        let line = text.lines().find(|line| line.contains("\"ok\""))?;
        Some((number, line.split('"').nth(7).unwrap().to_owned(), text))
    };
    let (number, sha256, text) = (1..=3).find_map(of_shard).expect("one compiled something");
    let other = "0123456789abcdef".repeat(4);
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let body = format!("{}\n", body.replace(&sha256, &other));
    let digest = gfxpack_model::Digest::of(body.as_bytes());
    let name = format!("shard-{number}-of-3.manifest");
    project.write(&format!("t/{name}"), &format!("{body}{{\"sha256\":\"{digest}\"}}\n"));
    let [one, two] = ["s", "t"].map(|dir| format!("{dir}/shard-{number}"));
    refused(&["s", "t"], 101, &["two different objects", &sha256, &other, &one, &two]);
    merge(&project, &["s", "t"], &["--allow-partial"]).expect_code(101);
    fs::remove_file(project.path().join("t").join(name)).unwrap();

    // Only what is damaged is compiled again.
    merge(&project, &["s"], &[]).expect_code(0);
    let whole = project.tree("merged");
    fs::remove_dir_all(project.path().join("merged")).unwrap();
    let (name, mut object) = project.tree("s/v1/objects").remove(0);
    let job = name.rsplit('/').next().unwrap();
    let has = |index: &u32| project.text(&format!("s/shard-{index}-of-3.manifest")).contains(job);
    let damaged = format!("{}/3", (1..=3).find(has).expect("some shard has it"));
    let middle = object.len() / 2;
    object[middle] ^= 1;
    fs::write(project.path().join("s/v1/objects").join(name), object).unwrap();
    refused(&["s"], 101, &[&format!("shard {damaged}")]);
    let run = shard(&project, &damaged, "s", &[]).expect_code(0);
    assert_eq!((&finished(&run)["ok"], started(&run)), (&1.into(), 1));
    merge(&project, &["s"], &[]).expect_code(0);
    assert!(project.tree("merged") == whole);
    fs::remove_dir_all(project.path().join("merged")).unwrap();

    shard(&project, "1/2", "t", &[]).expect_code(0);
    refused(&["s", "t"], 2, &["is shard 1/2", "of another number"]);

    // A plan with one kernel more: what both have in common is not compiled.
    let manifest = project.text("kernels.toml").replace("options = [", "options = [\"-DN=9\", ");
    fs::rename(project.path().join("plan"), project.path().join("old-plan")).unwrap();
    project.write("kernels.toml", &manifest);
    plan(&project, &["--hipcc", "bin/hipcc", "--target", "gfx906_60"]);
    refused(&["s"], 2, &["of plan", "s/shard-1-of-3"]);
    assert_eq!(run_three(&project), 1);
    merge(&project, &["s"], &[]).expect_code(0);
}

#[test]
fn a_shard_with_another_toolchain_or_without_the_plans_files_is_refused() {
    let project = faulty(&[""]);
    let stand_in = project.text("bin/hipcc");
    project.write("bin/hipcc", &stand_in.replace("exec hipcc", "# newer\nexec hipcc"));
    let run = shard(&project, "1/1", "s", &[]).expect_code(2);
    assert!(run.stdout.contains("differs in hipcc"), "{}", run.stdout);
    assert!(run.stdout.contains("container image"), "the hint says what to do: {}", run.stdout);
    assert_eq!(started(&run), 0);
    project.write("bin/hipcc", &stand_in);
    let (files, lost) = (project.path().join("plan/files"), project.path().join("lost"));
    fs::rename(&files, &lost).unwrap();
    let run = shard(&project, "1/1", "s", &[]).expect_code(2);
    assert!(run.stdout.contains("`k.cpp` is missing"), "{}", run.stdout);
    fs::rename(&lost, &files).unwrap();
    shard(&project, "1/1", "s", &[]).expect_code(0);
}

#[test]
fn a_refusal_is_kept_when_shards_use_the_cache() {
    let project = faulty(&["-DBROKEN"]);
    for turn in 0..2 {
        let run = project.run(&shard_arguments("1/1", "s", "s"));
        assert_eq!(started(&run.expect_code(42)), 1 - turn);
        let kept = |(name, _): &(String, Vec<u8>)| name.starts_with("refusals/");
        assert_eq!(project.tree("s/v1").iter().filter(|file| kept(file)).count(), 1);
    }
}

#[test]
fn a_killed_shard_resumes_when_run_again() {
    let project = faulty(&["", "", "-DFAULT=wait", ""]);
    let (gate, key) = Gate::closed(&pipe(&project, "wait"));
    let mut child = project
        .start(&[&shard_arguments("1/1", "s", "killed-cache")[..], &["--jobs", "2"]].concat());
    let objects =
        || project.tree("s/v1/objects").iter().filter(|(name, _)| !name.contains("/.")).count();
    while objects() < 3 || !gate.was_reached() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!project.path().join("s/shard-1-of-1.manifest").exists(), "the manifest comes last");
    assert_eq!(missing(&project, &["--shards", "1"]), "1\n");
    merge(&project, &["s"], &[]).expect_code(2);
    drop(key);
    gate.wait_until_gone();
    let run = shard(&project, "1/1", "s", &[]).expect_code(0);
    assert_eq!((&finished(&run)["ok"], &finished(&run)["cached"]), (&1.into(), &3.into()));
    assert_eq!(started(&run), 1);
    merge(&project, &["s"], &[]).expect_code(0);
}

#[test]
fn an_interrupted_shard_stops_its_compilers_and_writes_no_manifest() {
    let project = faulty(&["-DFAULT=wait"]);
    let (gate, _key) = Gate::closed(&pipe(&project, "wait"));
    let mut child = project.start(&shard_arguments("1/1", "s", "cache"));
    while !gate.was_reached() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::yield_now();
    }
    tool("kill", &["-TERM", &child.id().to_string()], project.path());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!project.path().join("s/shard-1-of-1.manifest").exists());
}
