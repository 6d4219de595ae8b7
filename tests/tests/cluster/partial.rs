//! Kernels without objects: refused ones are not tried again, those that failed because of the
//! machine are, and a merge without them says so.

use std::fs;

use gfxpack_tests::gate::Gate;
use gfxpack_tests::project::{command, finish};
use serde_json::json;

use super::lab::{faulty, finished, merge, pipe, shard, started};

#[test]
fn refused_kernels_are_not_tried_again_and_the_kdb_is_that_of_one_machine() {
    let project = faulty(&["", "-DBROKEN", ""]);
    let arguments = "build --manifest kernels.toml --target gfx906_60 --hipcc bin/hipcc --via hipcc --out local --allow-partial";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    project.run(&arguments).expect_code(0);
    let run = shard(&project, "1/1", "s", &[]).expect_code(42);
    assert_eq!((&finished(&run)["ok"], &finished(&run)["refused"]), (&2.into(), &1.into()));
    let error = &run.of_type("error")[0];
    assert_eq!(error["exit_code"], 42);
    assert!(error["hint"].as_str().unwrap().contains("do not run it again"), "{error}");
    assert_eq!(started(&run), 3);
    // The same exit code, from what is noted.
    let again = shard(&project, "1/1", "s", &[]).expect_code(42);
    assert_eq!(started(&again), 0);
    let notes = project.tree("s/failed");
    let note = String::from_utf8(notes[0].1.clone()).unwrap();
    assert!(notes.len() == 1 && note.contains("error: this kernel is broken"), "{note}");
    let status = project.run(&["status", "s", "--missing=ranges"]).expect_code(0);
    assert_eq!(status.stdout, "", "it is done");
    let status = project.run(&["status", "s"]).expect_code(0);
    assert!(status.stdout.contains("1 refused"), "{}", status.stdout);

    merge(&project, &["s"], &[]).expect_code(100);
    merge(&project, &["s"], &["--allow-partial"]).expect_code(0);
    fs::remove_file(project.path().join("local/refused.log")).expect("it tells what was refused");
    assert!(project.tree("merged") == project.tree("local"));
    assert!(project.text("merged/manifest.json").contains("\"complete\": false"));
    let again = shard(&project, "1/1", "s", &["--retry-refused"]).expect_code(42);
    assert_eq!(started(&again), 1, "only what was refused is asked again");
}

#[test]
fn ninja_stops_at_a_refused_kernel_unless_asked_to_go_on() {
    let project = faulty(&["", "-DBROKEN", ""]);
    let export = "export ninja --plan plan --out n --hipcc bin/hipcc --message-format json";
    let export = project.run(&export.split(' ').collect::<Vec<_>>()).expect_code(0);
    let exported = &export.of_type("exported")[0];
    assert_eq!((&exported["jobs"], &exported["file"]), (&3.into(), &"n/build.ninja".into()));
    let ninja = |arguments: &[&str]| {
        let mut ninja = command("ninja");
        ninja.args(["-C", "n"]).args(arguments).current_dir(project.path());
        finish(ninja)
    };
    let expected = "error: this kernel is broken";
    let made = |number: usize| match number {
        0 => 1,
        _ => 2,
    };
    // Job after job in their order: what comes after the broken one waits.
    let turns = [&["-j", "1"][..], &["-k", "0"], &["-k", "0"], &[]];
    for (number, more) in turns.into_iter().enumerate() {
        let run = ninja(more).expect_code(1);
        assert!(run.stdout.contains("FAILED: v4/objects/"), "{}", run.stdout);
        assert!(run.stdout.contains(expected), "{}", run.stdout);
        assert!(run.stdout.contains("do not run it again"), "{}", run.stdout);
        assert_eq!(project.tree("n/v4/objects").len(), made(number), "run {number}");
        assert!(!project.path().join("n/merged").exists());
        assert!(!project.path().join("n/shard-1-of-1.manifest").exists());
    }
    let job = project.tree("n/failed")[0].0.trim_end_matches(".json").to_owned();
    let exec = ["exec-job", &job, "--plan", "plan", "--out", "n", "--hipcc", "bin/hipcc"];
    let run = project.run(&exec).expect_code(42);
    assert!(run.stderr.contains(expected), "{}", run.stderr);

    // What the documentation says to do then.
    let run = shard(&project, "1/1", "n", &[]).expect_code(42);
    assert_eq!((&finished(&run)["cached"], &finished(&run)["refused"]), (&2.into(), &1.into()));
    assert_eq!(started(&run), 0);
    merge(&project, &["n"], &[]).expect_code(100);
    merge(&project, &["n"], &["--allow-partial"]).expect_code(0);
}

#[test]
fn a_single_job_warns_of_a_cache_that_cannot_be_written() {
    let project = faulty(&[""]);
    let jobs = project.text("plan/jobs.jsonl");
    let job = jobs.split('"').nth(1).expect("the first job's digest");
    let exec = ["exec-job", job, "--plan", "plan", "--out", "n", "--hipcc", "bin/hipcc"];
    // No user can make a file there.
    let run = project.run(&[&exec[..], &["--cache-dir", "/sys"]].concat()).expect_code(0);
    assert!(run.stderr.contains("the cache in `/sys` can't be written"), "{}", run.stderr);
    assert_eq!(project.tree("n/v4/objects").len(), 1);
}

#[test]
fn jobs_that_failed_because_of_the_machine_are_retried_once() {
    let project = faulty(&["-DFAULT=kill-once", "-DFAULT=kill", ""]);
    let kill = project.write("bin/kill", "");
    let once = Gate::new(&pipe(&project, "kill-once"), || {});
    let run = shard(&project, "1/1", "s", &[]).expect_code(1);
    once.wait_until_gone();
    let last = finished(&run);
    assert_eq!((&last["ok"], &last["infra"]), (&2.into(), &1.into()), "{last}");
    let status = project.run(&["status", "s", "--missing=ranges"]).expect_code(0);
    assert_eq!(status.stdout, "1\n");
    project.write("s/shard-2-of-2.manifest", "");
    let status = project.run(&["status", "s", "--message-format", "json"]).expect_code(0);
    let one = &status.of_type("shard")[0];
    assert_eq!((&one["shard"], &one["to_run"]), (&"1/1".into(), &true.into()), "{one}");
    let state = one["state"].as_str().unwrap();
    assert_eq!(state, "done, 3 jobs, 1 lost by the machine: to run again");
    let all = &status.of_type("shards")[0];
    assert_eq!((&all["count"], &all["refused"]), (&1.into(), &0.into()), "{all}");
    assert_eq!((&all["missing"], &all["ranges"]), (&json!([1]), &"1".into()), "{all}");
    assert!(all["plan"].as_str().is_some_and(|plan| plan.len() == 64), "{all}");
    let strange = all["strange"].as_array().unwrap();
    assert!(strange.len() == 1 && strange[0].as_str().unwrap().contains("cut off"), "{all}");
    assert_eq!(status.messages().len(), 2);
    fs::remove_file(project.path().join("s/shard-2-of-2.manifest")).unwrap();
    let refused = merge(&project, &["s"], &[]).expect_code(2);
    assert!(refused.stderr.contains("its machine lost 1"), "{}", refused.stderr);
    fs::remove_file(kill).unwrap();
    let run = shard(&project, "1/1", "s", &[]).expect_code(0);
    assert_eq!(started(&run), 1);
    merge(&project, &["s"], &[]).expect_code(0);
}

#[test]
fn a_kernel_out_of_time_is_retried_once_with_twice_the_limit() {
    let project = faulty(&["-DFAULT=hang-once"]);
    let once = Gate::new(&pipe(&project, "hang"), || {});
    let run = shard(&project, "1/1", "s", &["--timeout", "15"]).expect_code(0);
    once.wait_until_gone();
    assert_eq!(finished(&run)["ok"], 1);
}

#[test]
fn a_missing_shard_is_marked_and_blocks_packages() {
    let project = faulty(&[""; 4]);
    let shards: Vec<u32> = (1..=4).collect();
    for index in &shards {
        shard(&project, &format!("{index}/4"), "s", &[]).expect_code(0);
    }
    let jobs = |index: u32| {
        project.text(&format!("s/shard-{index}-of-4.manifest")).matches("\"ok\"").count()
    };
    let gone = shards.into_iter().find(|index| jobs(*index) > 0).expect("some shard has jobs");
    let lost = jobs(gone);
    fs::remove_file(project.path().join(format!("s/shard-{gone}-of-4.manifest"))).unwrap();
    merge(&project, &["s"], &[]).expect_code(2);
    let run = merge(&project, &["s"], &["--allow-partial"]).expect_code(0);
    assert!(run.stderr.contains("warning: ignored: "), "{}", run.stderr);
    let manifest = project.text("merged/manifest.json");
    assert!(manifest.contains("its shard was not there"), "{manifest}");
    let package =
        ["package", "merged/kdb/gfx906_60.kdb", "--out", "packages", "--format", "tar.gz"];
    let refused = project.run(&package).expect_code(100);
    assert!(refused.stderr.contains(&format!("it lacks {lost} kernel")), "{}", refused.stderr);
}
