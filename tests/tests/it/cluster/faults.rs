//! Faults of shards: each succeeds or reports the problem, nothing is lost, and nothing is compiled
//! twice.

use std::fs;
use std::process::Stdio;

use crate::support::gate::Gate;
use crate::support::project::{Project, tool};

use super::lab::{faulty, finished, merge, missing, pipe, plan, shard, shard_arguments, started};

/// Three shards of six kernels, built.
fn three_shards() -> Project {
    let project = faulty(&[""; 6]);
    assert_eq!(run_three(&project), 6);
    project
}

/// Runs all three, and counts what they had compiled.
fn run_three(project: &Project) -> usize {
    let run = |index| shard(project, &format!("{index}/3"), "s", &[]).expect_code(0);
    (1..=3).map(run).map(|run| started(&run)).sum()
}

/// The shard with a job, and the file of its object.
fn some_object(project: &Project) -> (String, String) {
    let (name, _) = project.tree("s/v1/objects").remove(0);
    let job = name.rsplit('/').next().unwrap().to_owned();
    let shard = (1..=3)
        .find(|index| project.text(&format!("s/shard-{index}-of-3.manifest")).contains(&job))
        .expect("some shard has it");
    (format!("{shard}/3"), format!("s/v1/objects/{name}"))
}

#[test]
fn shards_of_different_plans_are_refused_by_name() {
    let project = three_shards();
    let refused = |dirs: &[&str], expected: &[&str]| {
        let run = merge(&project, dirs, &[]).expect_code(2);
        for text in expected {
            assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
        }
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
        assert!(!project.path().join("merged/kdb").exists(), "nothing is made of them");
    };
    let copy = |name: &str| {
        fs::create_dir_all(project.path().join("t")).unwrap();
        fs::copy(project.path().join("s").join(name), project.path().join("t").join(name)).unwrap();
    };
    copy("shard-2-of-3.manifest");
    refused(&["s", "t"], &["shard 2/3 twice", "s/shard-2-of-3", "t/shard-2-of-3"]);
    refused(&["t"], &["2 of 3 shards: 1,3"]);
    let text = project.text("s/shard-2-of-3.manifest");
    project.write("t/shard-2-of-3.manifest", &text[..text.len() - 30]);
    refused(&["t"], &["t/shard-2-of-3", "cut off"]);
    fs::remove_dir_all(project.path().join("t")).unwrap();
    fs::create_dir(project.path().join("t")).unwrap();
    refused(&["t"], &["find a shard"]);
    refused(&["nowhere"], &["nowhere"]);

    shard(&project, "1/2", "t", &[]).expect_code(0);
    refused(&["s", "t"], &["is shard 1/2", "of another number"]);
    fs::remove_file(project.path().join("t/shard-1-of-2.manifest")).unwrap();

    // A plan with one kernel more: what both have in common is not compiled.
    let manifest = project.text("kernels.toml").replace("options = [", "options = [\"-DN=9\", ");
    fs::rename(project.path().join("plan"), project.path().join("old-plan")).unwrap();
    project.write("kernels.toml", &manifest);
    plan(&project, &["--hipcc", "bin/hipcc", "--target", "gfx906_60"]);
    refused(&["s"], &["of plan", "s/shard-1-of-3"]);
    assert_eq!(run_three(&project), 1);
    merge(&project, &["s"], &[]).expect_code(0);
}

#[test]
fn a_plan_that_lost_its_files_is_refused() {
    let project = faulty(&[""]);
    fs::rename(project.path().join("plan/files"), project.path().join("lost")).unwrap();
    let lost = shard(&project, "1/1", "s", &[]).expect_code(2);
    assert!(lost.stdout.contains("`k.cpp` is missing"), "{}", lost.stdout);
}

#[test]
fn a_shard_with_a_damaged_object_is_named_and_recompiles_only_that() {
    let project = three_shards();
    merge(&project, &["s"], &[]).expect_code(0);
    let whole = project.tree("merged");
    fs::remove_dir_all(project.path().join("merged")).unwrap();
    let (name, object) = some_object(&project);
    let path = project.path().join(&object);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let run = merge(&project, &["s"], &[]).expect_code(101);
    assert!(run.stderr.contains(&format!("shard {name}")), "{}", run.stderr);
    assert!(!project.path().join("merged/kdb/gfx906_60.kdb").exists());
    let run = shard(&project, &name, "s", &[]).expect_code(0);
    assert_eq!((&finished(&run)["ok"], started(&run)), (&1.into(), 1));
    merge(&project, &["s"], &[]).expect_code(0);
    assert!(project.tree("merged") == whole);
}

#[test]
fn a_refusal_is_kept_when_shards_use_the_cache() {
    let project = faulty(&["-DBROKEN"]);
    for turn in 0..2 {
        let arguments = shard_arguments("1/1", "s", "s");
        let run = project.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(started(&run.expect_code(42)), 1 - turn);
        let kept = |(name, _): &(String, Vec<u8>)| name.starts_with("refusals/");
        assert_eq!(project.tree("s/v1").iter().filter(|file| kept(file)).count(), 1);
    }
}

#[test]
fn two_different_objects_of_one_job_are_both_reported() {
    let project = three_shards();
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
    for more in [&[][..], &["--allow-partial"]] {
        let run = merge(&project, &["s", "t"], more).expect_code(101);
        let [one, two] = ["s", "t"].map(|dir| format!("{dir}/shard-{number}"));
        for expected in ["two different objects", &sha256, &other, &one, &two] {
            assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        }
    }
}

#[test]
fn another_toolchain_is_refused_with_the_differences() {
    let project = faulty(&[""]);
    let stand_in = project.text("bin/hipcc");
    project.write("bin/hipcc", &stand_in.replace("exec hipcc", "# newer\nexec hipcc"));
    let run = shard(&project, "1/1", "s", &[]).expect_code(2);
    assert!(run.stdout.contains("differs in hipcc"), "{}", run.stdout);
    assert!(run.stdout.contains("container image"), "the hint says what to do: {}", run.stdout);
    assert_eq!(started(&run), 0);
    project.write("bin/hipcc", &stand_in);
    shard(&project, "1/1", "s", &[]).expect_code(0);
}

#[test]
fn a_killed_shard_resumes_when_run_again() {
    let project = faulty(&["", "", "-DFAULT=wait", ""]);
    let (gate, key) = Gate::closed(&pipe(&project, "wait"));
    let arguments = shard_arguments("1/1", "s", "killed-cache");
    let arguments: Vec<&str> =
        arguments.iter().map(String::as_str).chain(["--jobs", "2"]).collect();
    let mut child =
        project.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
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
    let arguments = shard_arguments("1/1", "s", "cache");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = project.start(&arguments);
    while !gate.was_reached() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::yield_now();
    }
    tool("kill", &["-TERM", &child.id().to_string()], project.path());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!project.path().join("s/shard-1-of-1.manifest").exists());
}
