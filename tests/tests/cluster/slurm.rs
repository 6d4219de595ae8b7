//! Shards with a real Slurm, one of whose two nodes is lost meanwhile.

use std::fs;

use gfxpack_tests::gate::Gate;
use gfxpack_tests::project::{Project, Run, finish};
use serde_json::json;

use super::lab::{faulty, pipe};
use super::slurm_lab::Slurm;

fn gfxpack(project: &Project, slurm: &Slurm, arguments: &[&str]) -> Run {
    let mut command = project.command(arguments);
    slurm.applies_to(&mut command);
    finish(command)
}

const JSON: &[&str] = &["--message-format", "json"];

/// Submits the project's plan in so many shards.
fn submit(project: &Project, slurm: &Slurm, out: &str, shards: &str, more: &[&str]) -> Run {
    let arguments = ["submit", "slurm", "--plan", "plan", "--out", out, "--shards", shards];
    let options = ["--cpus", "1", "--hipcc", "bin/hipcc", "--sbatch", "--comment=test"];
    gfxpack(project, slurm, &[&arguments[..], &options, more].concat())
}

/// Follows what was submitted to its end.
fn wait(project: &Project, slurm: &Slurm, out: &str, more: &[&str]) -> Run {
    gfxpack(project, slurm, &[&["wait", out, "--poll", "1"], more].concat())
}

/// Runs three shards of the project's plan, which has a kernel that waits at
/// a pipe, and takes the node away that compiles it.
pub(crate) fn run_although_a_node_is_lost(project: &Project, out: &str) -> Slurm {
    let mut slurm = Slurm::start();
    let run = submit(project, &slurm, out, "3", &["--dry-run"]).expect_code(0);
    assert!(run.stdout.contains("--array=1-3 s/slurm/shards.sbatch"), "{}", run.stdout);
    let submitted = |run: &Run, what: &str| run.of_type("submitted")[0][what].clone();
    let run = submit(project, &slurm, out, "3", &[JSON, &["--dry-run"]].concat()).expect_code(0);
    assert_eq!(run.messages().len(), 1, "{}", run.stdout);
    assert_eq!(
        (submitted(&run, "ranges"), submitted(&run, "dry_run")),
        (json!("1-3"), json!(true))
    );
    assert!(submitted(&run, "job").is_null(), "{}", run.stdout);
    // What people edit stays: here, to have the stand-in asked, from caches
    // that share nothing.
    let file = format!("{out}/slurm/shards.sbatch");
    let script = project.text(&file);
    assert!(script.contains("#SBATCH --comment=test\n"), "{script}");
    let edited = script
        .replace(" --jobs", " --via hipcc --cache-dir \"cache-$SLURMD_NODENAME\" --jobs")
        .replace("exec ", &format!("cd {}\nexec ", project.path().display()));
    project.write(&file, &edited);
    let (gate, key) = Gate::closed(&pipe(project, "wait"));
    let run = submit(project, &slurm, out, "3", JSON).expect_code(0);
    assert_eq!((submitted(&run, "engine"), submitted(&run, "count")), (json!("slurm"), json!(3)));
    assert_eq!(
        (submitted(&run, "shards"), submitted(&run, "dry_run")),
        (json!([1, 2, 3]), json!(false))
    );
    assert_eq!((submitted(&run, "job").is_u64(), submitted(&run, "script")), (true, json!(file)));
    assert_eq!(project.text(&file), edited);
    let again = submit(project, &slurm, out, "3", &[]).expect_code(0);
    assert!(again.stderr.contains("nothing to submit"), "{}", again.stderr);
    let again = submit(project, &slurm, out, "3", JSON).expect_code(0);
    assert_eq!(
        (submitted(&again, "shards"), submitted(&again, "job").is_null()),
        (json!([]), true)
    );
    submit(project, &slurm, out, "4", &[]).expect_code(2);

    // All but one shard done, and that one in the middle of a kernel.
    let missing = || gfxpack(project, &slurm, &["status", out, "--missing=ranges"]).stdout;
    slurm.until("two shards are done and a kernel hangs", || {
        gate.was_reached() && missing().trim().parse::<u32>().is_ok()
    });
    let shard = missing().trim().to_owned();
    let status = gfxpack(project, &slurm, &[&["status", out], JSON].concat()).expect_code(0);
    let shards = status.of_type("shard");
    let running = shards.iter().find(|one| one["to_run"] == true).expect("one is to run");
    assert_eq!(shards.len(), 3);
    assert_eq!(
        (&running["shard"], &running["state"]),
        (&json!(format!("{shard}/3")), &json!("running"))
    );
    let queue = slurm.ask("squeue", &["--noheader", "--array", "--format=%K %N %F %T"]);
    let line = queue.lines().find(|line| line.ends_with("RUNNING")).expect("one runs");
    let columns: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(columns[0], shard, "{queue}");
    let (node, element) = (columns[1].to_owned(), format!("{}_{}", columns[2], columns[0]));
    slurm.cut_off(&node);
    drop(key);
    gate.wait_until_gone();
    slurm.until("Slurm queues what the lost node ran", || {
        slurm.ask("squeue", &["--noheader", "--array", "--format=%T"]).contains("PENDING")
    });
    // Slurm would hold it back for two minutes.
    slurm.ask("scontrol", &["update", &format!("JobId={element}"), "StartTime=now"]);
    let run = wait(project, &slurm, out, JSON).expect_code(0);
    let all = &run.of_type("shards")[0];
    assert_eq!((&all["missing"], &all["ranges"]), (&json!([]), &json!("")), "{all}");
    assert_eq!((&all["count"], &all["refused"]), (&json!(3), &json!(0)), "{all}");
    let states = run.of_type("shard");
    assert!(states.iter().all(|one| one["state"].as_str().unwrap().starts_with("done")));
    slurm
}

/// What is lost later is all that a second submit runs.
pub(crate) fn run_what_is_missing_alone(project: &Project, slurm: &mut Slurm, out: &str) {
    let manifest = (1..=3).map(|shard| (shard, format!("{out}/shard-{shard}-of-3.manifest")));
    let (shard, manifest) =
        manifest.into_iter().find(|(_, file)| project.text(file).contains("\"ok\"")).unwrap();
    fs::remove_file(project.path().join(&manifest)).unwrap();
    let run = wait(project, slurm, out, &[]).expect_code(1);
    assert!(run.stderr.contains(&format!("1 of 3 shards: {shard}")), "{}", run.stderr);
    let run = wait(project, slurm, out, JSON).expect_code(1);
    assert_eq!(run.of_type("shards")[0]["missing"], json!([shard]));
    let error = &run.of_type("error")[0];
    assert_eq!(error["exit_code"], 1);
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
    let run = submit(project, slurm, out, "3", &[]).expect_code(0);
    assert!(run.stderr.contains(&format!("submitted shards {shard} of 3")), "{}", run.stderr);
    let run = wait(project, slurm, out, &[]).expect_code(0);
    assert!(run.stdout.contains("3 of 3 shards are done"), "{}", run.stdout);
    let states = project.text(&manifest);
    assert!(!states.contains("\"ok\""), "something was compiled again: {states}");
}

/// A shard with refused kernels is done, and whoever waits hears of them.
pub(crate) fn refused_kernels_are_reported(slurm: &mut Slurm) {
    let project = faulty(&["", "-DBROKEN"]);
    submit(&project, slurm, "r", "1", &[]).expect_code(0);
    let run = wait(&project, slurm, "r", JSON).expect_code(42);
    assert_eq!(run.of_type("shards")[0]["refused"], 1);
    assert_eq!(run.of_type("error")[0]["exit_code"], 42);
    let again = submit(&project, slurm, "r", "1", JSON).expect_code(0);
    assert_eq!(again.of_type("submitted")[0]["shards"], json!([]), "it would be refused again");
    let run = wait(&project, slurm, "r", &[]).expect_code(42);
    assert!(run.stdout.contains("done, 2 jobs, 1 refused"), "{}", run.stdout);
}
