//! Shards by a real Slurm, one of whose two nodes is lost in the middle.

use std::fs;

use gfxpack_tests::project::{Project, Run, finish};

use super::lab::{calls, faulty, merge};
use super::slurm_lab::Slurm;

fn gfxpack(project: &Project, slurm: &Slurm, arguments: &[&str]) -> Run {
    let mut command = project.command(arguments);
    slurm.applies_to(&mut command);
    finish(command)
}

const SUBMIT: &[&str] = &[
    "submit",
    "slurm",
    "--plan",
    "plan",
    "--out",
    "s",
    "--shards",
    "3",
    "--cpus",
    "1",
    "--hipcc",
    "bin/hipcc",
    "--sbatch",
    "--comment=test",
];

#[test]
fn slurm_makes_the_same_bytes_though_a_node_is_lost() {
    let project = faulty(&["", "", "-DFAULT=wait", "", "", ""]);
    let local = "build --plan plan --hipcc bin/hipcc --out local --cache-dir local-cache";
    project.run(&local.split(' ').collect::<Vec<_>>()).expect_code(0);
    let mut slurm = Slurm::start();

    let run = gfxpack(&project, &slurm, &[SUBMIT, &["--dry-run"]].concat()).expect_code(0);
    assert!(run.stdout.contains("--array=1-3 s/slurm/shards.sbatch"), "{}", run.stdout);
    // What people edit stays: here, to have the stand-in asked, from caches
    // that share nothing.
    let script = project.text("s/slurm/shards.sbatch");
    assert!(script.contains("#SBATCH --comment=test\n"), "{script}");
    let edited = script
        .replace(" --jobs", " --via hipcc --cache-dir \"cache-$SLURMD_NODENAME\" --jobs")
        .replace("exec ", &format!("cd {}\nexec ", project.path().display()));
    project.write("s/slurm/shards.sbatch", &edited);
    let wait = project.write("bin/wait", "");
    fs::remove_file(project.path().join("bin/calls")).ok();
    gfxpack(&project, &slurm, SUBMIT).expect_code(0);
    assert_eq!(project.text("s/slurm/shards.sbatch"), edited);
    let again = gfxpack(&project, &slurm, SUBMIT).expect_code(0);
    assert!(again.stderr.contains("nothing to submit"), "{}", again.stderr);
    let other = [SUBMIT, &["--shards", "4"]].concat();
    let other: Vec<&str> = other
        .iter()
        .enumerate()
        .filter(|(place, _)| !(6..8).contains(place))
        .map(|(_, word)| *word)
        .collect();
    gfxpack(&project, &slurm, &other).expect_code(2);

    // All but one shard done, and that one in the middle of a kernel.
    let missing = || gfxpack(&project, &slurm, &["status", "s", "--missing=ranges"]).stdout;
    slurm.until("two shards are done and a kernel hangs", || {
        project.path().join("bin/waiting").exists() && missing().trim().parse::<u32>().is_ok()
    });
    let shard = missing().trim().to_owned();
    let queue = slurm.ask("squeue", &["--noheader", "--array", "--format=%K %N %F %T"]);
    let line = queue.lines().find(|line| line.ends_with("RUNNING")).expect("one runs");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[0], shard, "{queue}");
    let (node, element) = (words[1].to_owned(), format!("{}_{}", words[2], words[0]));
    slurm.cut_off(&node);
    fs::remove_file(wait).unwrap();
    slurm.until("Slurm queues what the lost node ran", || {
        slurm.ask("squeue", &["--noheader", "--array", "--format=%T"]).contains("PENDING")
    });
    // Slurm would hold it back for two minutes.
    slurm.ask("scontrol", &["update", &format!("JobId={element}"), "StartTime=now"]);
    let wait = gfxpack(&project, &slurm, &["wait", "s", "--poll", "1"]).expect_code(0);
    assert!(wait.stdout.contains("3 of 3 shards are done"), "{}", wait.stdout);
    merge(&project, &["s"], &[]).expect_code(0);
    assert!(project.tree("merged") == project.tree("local"), "the bytes of one machine");

    // What is lost later is all that a second submit runs.
    let before = calls(&project);
    fs::remove_file(project.path().join(format!("s/shard-{shard}-of-3.manifest"))).unwrap();
    let run = gfxpack(&project, &slurm, &["wait", "s", "--poll", "1"]).expect_code(1);
    assert!(run.stderr.contains(&format!("1 of 3 shards: {shard}")), "{}", run.stderr);
    let run = gfxpack(&project, &slurm, SUBMIT).expect_code(0);
    assert!(run.stderr.contains(&format!("submitted shards {shard} of 3")), "{}", run.stderr);
    gfxpack(&project, &slurm, &["wait", "s", "--poll", "1"]).expect_code(0);
    assert_eq!(calls(&project), before, "its objects were there");
    merge(&project, &["s"], &[]).expect_code(0);
    assert!(project.tree("merged") == project.tree("local"));
}
