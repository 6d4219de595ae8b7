//! Options of keys: an option that accesses files, an object that no device could load, or a
//! command line that is too long makes only that key fail.

use std::fs;

use crate::support::project::{Project, Run, finish, python_reads};

const GFX906: u32 = 0x2f;

const HIP: &str = "extern \"C\" __global__ void k(float* x) { *x *= N; }\n";
const OPENCL: &str = "kernel void k(global float* x) { x[get_global_id(0)] *= N; }\n";

/// Keys of two sources with these options each, and one without.
fn project(options: &[String]) -> Project {
    let project = Project::new();
    project.write("k.cpp", HIP);
    project.write("k.cl", OPENCL);
    let mut lines = String::new();
    for name in ["k.cl", "k.cpp"] {
        for (number, options) in [String::new()].iter().chain(options).enumerate() {
            let args = format!(" -DN={number} {options} -mcpu=gfx906");
            let key =
                serde_json::json!({ "kernel_name": format!("{name}.o"), "kernel_args": args });
            lines.push_str(&format!("{key}\n"));
        }
    }
    project.write("keys.jsonl", &lines);
    project
}

const DIST: &[&str] = &[
    "dist",
    "--keys",
    "keys.jsonl",
    "--source-dir",
    ".",
    "--license",
    "MIT",
    "--target",
    "gfx906_60",
    "--out",
    "o",
    "--allow-partial",
];

fn kernels(project: &Project, out: &str) -> Vec<(String, String)> {
    python_reads(&project.path().join(out).join("kdb/gfx906_60.kdb"), GFX906)
}

/// The keys that were not compiled, with the reason.
fn unbuilt(run: &Run) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for group in run.of_type("unbuildable") {
        for key in group["keys"].as_array().unwrap() {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            found.push((text(&key["kernel_args"]), text(&group["reason"])));
        }
    }
    found
}

#[test]
fn an_option_that_accesses_files_is_refused_by_name_and_others_are_built() {
    let victim_dir = tempfile::tempdir().unwrap();
    let victim = victim_dir.path().join("victim");
    fs::write(&victim, "precious\n").unwrap();
    let victim = victim.display().to_string();
    let options = [
        format!("-Xclang -ftime-trace={victim}"),
        format!("-mllvm --info-output-file={victim} -mllvm -stats"),
        format!("-mllvm -info-output-file={victim} -mllvm -stats"),
        "-mllvm --stats".to_owned(),
        format!("-fsanitize-coverage-allowlist={victim}"),
        format!("-fsanitize-coverage-ignorelist={victim}"),
        format!("-fsanitize-ignorelist={victim}"),
        format!("-Xclang -foverride-record-layout={victim}"),
        format!("-mllvm -cgscc-inline-replay={victim}"),
        "-Xclang -fembed-bitcode=all".to_owned(),
        "-I../..".to_owned(),
        "-Iinc/../..".to_owned(),
    ];
    let project = project(&options);
    let run = project.run(&[DIST, &["--json", "-"]].concat()).expect_code(0);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious\n");
    assert_eq!(kernels(&project, "o").len(), 2);
    let unbuilt = unbuilt(&run);
    assert_eq!(unbuilt.len(), 2 * options.len(), "{unbuilt:?}");
    for (number, options) in options.iter().enumerate() {
        let of_it = format!(" -DN={} {options} -mcpu=gfx906", number + 1);
        let found: Vec<_> = unbuilt.iter().filter(|(args, _)| *args == of_it).collect();
        assert_eq!(found.len(), 2, "{options}");
        let named: Vec<&str> = options.split(' ').collect();
        let named = named[..if named.len() > 1 { 2 } else { 1 }].join(" ");
        assert!(found[0].1.contains(&format!("failed to accept option `{named}`")), "{found:?}");
    }
    // Without --allow-partial the run goes on as well, and says so at its end.
    project.run(&DIST[..DIST.len() - 1]).expect_code(100);
    assert_eq!(kernels(&project, "o").len(), 2);
}

#[test]
fn an_object_that_no_device_loads_fails_only_its_key() {
    let project = project(&["-mcode-object-version=3".to_owned()]);
    for (via, out) in [("auto", "a"), ("hipcc", "h")] {
        let more = ["--via", via, "--out", out, "--json", "-"];
        let dist: Vec<&str> =
            DIST.iter().copied().filter(|arg| !["--out", "o"].contains(arg)).collect();
        let run = project.run(&[&dist[..], &more].concat()).expect_code(0);
        let failed = run.of_type("job-failed");
        assert_eq!(failed.len(), 2, "{via}: {failed:?}");
        for failed in failed {
            assert_eq!(failed["reason"], "wrong-target", "{via}: {failed}");
            let message = failed["message"].as_str().unwrap();
            assert!(message.ends_with("not for gfx906:xnack-"), "{message}");
        }
        assert_eq!(kernels(&project, out).len(), 2, "{via}");
        let kdb = format!("{out}/kdb/gfx906_60.kdb");
        project.run(&["kdb", "verify", &kdb]).expect_code(0);
    }
}

#[test]
fn options_too_long_for_a_program_are_refused_by_every_route() {
    let define = |bytes: usize| format!("-DLONG={}", "x".repeat(bytes));
    let project =
        project(&[define(200_000), [define(120_000), "-ULONG".to_owned()].join(" ").repeat(6)]);
    let mut trees = Vec::new();
    for (via, out) in [("auto", "a"), ("hipcc", "h")] {
        let dist: Vec<&str> =
            DIST.iter().copied().filter(|arg| !["--out", "o"].contains(arg)).collect();
        let more = ["--via", via, "--out", out, "--json", "-"];
        let run = project.run(&[&dist[..], &more].concat()).expect_code(0);
        let unbuilt = unbuilt(&run);
        assert_eq!(unbuilt.len(), 4, "{via}");
        for (_, reason) in &unbuilt {
            assert!(reason.starts_with("failed to accept") && reason.len() < 1000, "{reason}");
        }
        assert_eq!(kernels(&project, out).len(), 2, "{via}");
        trees.push(project.tree(&format!("{out}/kdb")));
    }
    assert!(trees.windows(2).all(|pair| pair[0] == pair[1]), "the kdbs differ");
}

#[test]
fn options_too_long_for_this_system_fail_only_their_key() {
    // As many bytes as a plan takes, and more than a small stack leaves room for.
    let define = format!("-DLONG={} -ULONG ", "x".repeat(100_000));
    let project = project(&[define.repeat(4)]);
    let lines = project.text("keys.jsonl");
    let opencl: String =
        lines.split_inclusive('\n').filter(|line| line.contains("k.cl.o")).collect();
    project.write("keys.jsonl", &opencl);
    let limited = project.script("ulimit -s 1024; exec \"$@\"", &[DIST, &["--json", "-"]].concat());
    let run = finish(limited).expect_code(0);
    let failed = run.of_type("job-failed");
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0]["reason"], "too-long");
    assert_eq!(kernels(&project, "o").len(), 1);
    // Where there is room, it is compiled.
    project.run(DIST).expect_code(0);
    assert_eq!(kernels(&project, "o").len(), 2);
}
