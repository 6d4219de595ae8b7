//! One plan, several routes, the same objects and the same kdbs.

use std::fs;

use gfxpack_tests::project::{Project, tool};

use super::lab::{merge, plan};

const TARGETS: &str = "gfx906_60,gfx906_64";

/// What a route made: objects by job, kdbs, and what the manifest says.
type Made = (Vec<(String, Vec<u8>)>, Vec<(String, Vec<u8>)>, String);

fn made(project: &Project, objects: &str, out: &str) -> Made {
    let objects = project.tree(&format!("{objects}/v1/objects"));
    assert!(!objects.is_empty());
    let manifest = project.text(&format!("{out}/manifest.json"));
    (objects, project.tree(&format!("{out}/kdb")), manifest)
}

#[test]
fn local_builds_shards_in_any_order_and_ninja_make_the_same_bytes() {
    let project = Project::small();
    plan(&project, &["--target", TARGETS]);
    let build = |out: &str, cache: &str, jobs: &str, plan: &[&str]| {
        let arguments = ["build", "--out", out, "--cache-dir", cache, "--jobs", jobs];
        project.run(&[&arguments, plan].concat()).expect_code(0);
        made(&project, cache, out)
    };
    let inputs = ["--manifest", "kernels.toml", "--target", TARGETS];
    let expected = build("one", "c1", "1", &inputs);
    assert!(build("two", "c2", "2", &["--plan", "plan"]) == expected, "by the stored plan");

    // Each shard as on a machine of its own, put together in two orders.
    for (number, order) in [["1", "2", "3"], ["3", "1", "2"]].iter().enumerate() {
        if number == 0 {
            for index in order {
                let (out, cache) = (format!("s{index}"), format!("cs{index}"));
                let shard = format!("{index}/3");
                let arguments = [
                    "build",
                    "--plan",
                    "plan",
                    "--shard",
                    &shard,
                    "--out",
                    &out,
                    "--cache-dir",
                    &cache,
                ];
                project.run(&arguments).expect_code(0);
            }
        }
        let dirs = order.map(|index| format!("s{index}"));
        let dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
        fs::remove_dir_all(project.path().join("merged")).ok();
        merge(&project, &dirs, &[]).expect_code(0);
        let mut objects: Vec<_> =
            dirs.iter().flat_map(|dir| project.tree(&format!("{dir}/v1/objects"))).collect();
        objects.sort();
        let manifest = project.text("merged/manifest.json");
        assert!((objects, project.tree("merged/kdb"), manifest) == expected, "{order:?}");
    }

    // In one directory, parted by what the first build took.
    let costs = "c1/v1/costs.jsonl";
    for index in [2, 1] {
        let shard = format!("{index}/2");
        let arguments =
            ["build", "--plan", "plan", "--shard", &shard, "--costs", costs, "--out", "b"];
        project.run(&arguments).expect_code(0);
    }
    let status = project.run(&["status", "b", "--missing"]).expect_code(0);
    assert_eq!(status.stdout, "");
    fs::remove_dir_all(project.path().join("merged")).unwrap();
    merge(&project, &["b"], &[]).expect_code(0);
    assert!(made(&project, "b", "merged") == expected, "balanced");

    project.run(&["export", "ninja", "--plan", "plan", "--out", "n j"]).expect_code(0);
    let dir = project.path().join("n j");
    let mut ninja = gfxpack_tests::project::command("ninja");
    ninja.args(["-C", "n j"]).current_dir(project.path());
    ninja.env("GFXPACK_CACHE_DIR", project.path().join("cn"));
    gfxpack_tests::project::finish(ninja).expect_code(0);
    assert!(made(&project, "n j", "n j/merged") == expected, "ninja");
    assert!(tool("ninja", &["-n"], &dir).contains("no work to do"));
}

#[test]
fn a_stored_plan_is_the_same_whatever_the_order_of_keys() {
    let project = Project::small();
    let keys = |numbers: &[u32]| -> String {
        let line = |number: &u32| {
            format!(
                "{{\"kernel_name\":\"scale.cl.o\",\"kernel_args\":\" -DGROUP=64 -DFACTOR={number} -mcpu=gfx906\"}}\n"
            )
        };
        numbers.iter().map(line).collect()
    };
    let mut plans = Vec::new();
    for (name, order) in [("a", [1, 2, 3, 4]), ("b", [4, 2, 1, 3])] {
        let file = format!("{name}.jsonl");
        project.write(&file, &keys(&order));
        let plan =
            ["plan", "--keys", &file, "--source-dir", ".", "--target", "gfx906", "--out", name];
        project.run(&plan).expect_code(0);
        plans.push(project.tree(name));
    }
    assert!(plans[0] == plans[1]);
    assert!(plans[0].iter().any(|(name, _)| name == "jobs.jsonl"));
}
