//! Projects with a stored plan, and a hipcc that misbehaves on request.

use std::fs;
use std::path::PathBuf;

use crate::support::project::{Project, Run};

/// The real hipcc, but for faults that a define or a file in its directory
/// asks for. It waits at pipes there.
const STAND_IN: &str = r#"#!/bin/sh
here=$(dirname "$0")
case " $* " in *" -### "*) exec hipcc "$@" ;; esac
waits_at() { [ -p "$here/$1" ] && { read -r word < "$here/$1"; true; }; }
for word in "$@"; do
    case $word in
        -DFAULT=hang-once) if waits_at hang; then sleep 100000; fi ;;
        -DFAULT=kill-once) if waits_at kill-once; then kill -KILL $$; fi ;;
        -DFAULT=kill) if [ -e "$here/kill" ]; then kill -KILL $$; fi ;;
        -DFAULT=wait) waits_at wait ;;
    esac
done
exec hipcc "$@"
"#;

/// A kernel for each of these texts of defines, with the stand-in in bin.
pub(crate) fn faulty(defines: &[&str]) -> Project {
    let project = Project::with_compiler(STAND_IN, defines);
    plan(&project, &["--hipcc", "bin/hipcc", "--target", "gfx906_60"]);
    project
}

/// Stores the plan of a project's manifest in `plan`.
pub(crate) fn plan(project: &Project, more: &[&str]) -> Run {
    let arguments = ["plan", "--manifest", "kernels.toml", "--out", "plan"];
    project.run(&[&arguments, more].concat()).expect_code(0)
}

/// How many kernels a run of a shard had compiled.
pub(crate) fn started(run: &Run) -> usize {
    run.of_type("job-started").len()
}

/// Where the stand-in waits.
pub(crate) fn pipe(project: &Project, name: &str) -> PathBuf {
    project.path().join("bin").join(name)
}

/// Runs a shard with the stand-in, with an empty cache of its own so that
/// only what lies in `out` can be taken from there.
pub(crate) fn shard(project: &Project, shard: &str, out: &str, more: &[&str]) -> Run {
    let cache = project.path().join("caches").join(number_of_shard(project).to_string());
    let cache = cache.to_str().expect("a plain path").to_owned();
    project.run(&[&shard_arguments(shard, out, &cache), more].concat())
}

/// The arguments that run a shard with the stand-in.
pub(crate) fn shard_arguments<'a>(shard: &'a str, out: &'a str, cache: &'a str) -> Vec<&'a str> {
    let arguments = "build --plan plan --via hipcc --hipcc bin/hipcc --json - --shard";
    arguments.split(' ').chain([shard, "--out", out, "--cache-dir", cache]).collect()
}

/// A number that no earlier shard of the project was given.
fn number_of_shard(project: &Project) -> usize {
    let caches = project.path().join("caches");
    fs::create_dir_all(&caches).expect("made");
    let next = fs::read_dir(&caches).expect("readable").count();
    fs::create_dir(caches.join(next.to_string())).expect("made");
    next
}

/// Which shards of the plan `merge --missing` prints.
pub(crate) fn missing(project: &Project, more: &[&str]) -> String {
    let arguments = ["merge", "--plan", "plan", "--missing", "s"];
    project.run(&[&arguments, more].concat()).expect_code(0).stdout
}

/// Merges directories of shards into `merged`.
pub(crate) fn merge(project: &Project, dirs: &[&str], more: &[&str]) -> Run {
    let arguments = ["merge", "--plan", "plan", "--out", "merged"];
    project.run(&[&arguments, dirs, more].concat())
}

/// What the last run of a shard said that it came to.
pub(crate) fn finished(run: &Run) -> serde_json::Value {
    run.of_type("shard-finished").pop().expect("a shard that finished says so")
}
