//! Kernels without objects: refused ones are not tried again, those that failed because of the
//! machine are, and a merge without them says so.

use std::fs;

use crate::support::gate::Gate;

use super::lab::{faulty, finished, merge, missing, pipe, shard, started};

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
    assert_eq!(missing(&project, &[]), "", "it is done");

    merge(&project, &["s"], &[]).expect_code(100);
    merge(&project, &["s"], &["--allow-partial"]).expect_code(0);
    fs::remove_file(project.path().join("local/refused.log")).expect("it tells what was refused");
    assert!(project.tree("merged") == project.tree("local"));
    assert!(project.text("merged/manifest.json").contains("\"complete\": false"));
    let again = shard(&project, "1/1", "s", &["--retry-refused"]).expect_code(42);
    assert_eq!(started(&again), 1, "only what was refused is asked again");
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
    assert_eq!(missing(&project, &[]), "1\n");
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
    let run = shard(&project, "1/1", "s", &["--timeout", "4"]).expect_code(0);
    once.wait_until_gone();
    assert_eq!(finished(&run)["ok"], 1);
}

#[test]
fn missing_shards_are_printed_as_ranges_and_block_packages() {
    let project = faulty(&[""; 4]);
    let arguments = ["merge", "--plan", "plan", "--missing", "s", "none"];
    let unknown = project.run(&arguments).expect_code(2);
    assert!(unknown.stderr.contains("hint: say it with --shards N"), "{}", unknown.stderr);
    for index in ["2/6", "3/6", "1/2"] {
        shard(&project, index, "s", &[]).expect_code(0);
    }
    project.write("s/shard-1-of-6.manifest", "");
    let run = project.run(&[&arguments[..], &["--shards", "6"]].concat()).expect_code(0);
    assert_eq!(run.stdout, "1,4-6\n");
    for ignored in ["no directory `none`", "shard-1-of-6.manifest` is damaged", "is of 2 shards"] {
        assert!(run.stderr.contains(ignored), "{ignored}: {}", run.stderr);
    }
    let json = ["--shards", "6", "--json", "-"];
    let run = project.run(&[&arguments[..], &json].concat()).expect_code(0);
    let all = &run.of_type("shards")[0];
    assert_eq!((&all["count"], &all["ranges"]), (&6.into(), &"1,4-6".into()), "{all}");
    assert_eq!(all["missing"].to_string(), "[1,4,5,6]");
    assert_eq!(all["plan"].as_str().map(str::len), Some(64), "{all}");

    for index in ["1/2", "2/2"] {
        shard(&project, index, "t", &[]).expect_code(0);
    }
    let jobs = |index: u32| {
        project.text(&format!("t/shard-{index}-of-2.manifest")).matches("\"ok\"").count()
    };
    let gone = (1..=2).find(|index| jobs(*index) > 0).expect("some shard has jobs");
    let lost = jobs(gone);
    let missing = ["merge", "--plan", "plan", "--missing", "t"];
    assert_eq!(project.run(&missing).expect_code(0).stdout, "");
    fs::remove_file(project.path().join(format!("t/shard-{gone}-of-2.manifest"))).unwrap();
    assert_eq!(project.run(&missing).expect_code(0).stdout, format!("{gone}\n"));
    merge(&project, &["t"], &[]).expect_code(2);
    let run = merge(&project, &["t"], &["--allow-partial"]).expect_code(0);
    assert!(run.stderr.contains("warning: ignored: "), "{}", run.stderr);
    let ledger = project.text("merged/kernels.jsonl");
    assert!(ledger.contains("its shard was not there"), "{ledger}");
    let package =
        ["package", "merged/kdb/gfx906_60.kdb", "--out", "packages", "--format", "tar.gz"];
    let refused = project.run(&package).expect_code(100);
    assert!(refused.stderr.contains(&format!("it lacks {lost} kernel")), "{}", refused.stderr);
}
