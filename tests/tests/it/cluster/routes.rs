//! One plan gives the same objects and kdbs by every route.

use std::collections::BTreeMap;
use std::fs;

use crate::support::casd::Casd;
use crate::support::project::{Project, tool};
use gfxpack_model::Digest;
use serde_json::Value;

use super::lab::{merge, plan, started};

const TARGETS: &str = "gfx906_60,gfx906_64";
/// How many objects that is.
const JOBS: usize = 8;
/// Those that are compiled without hipcc, in whose place is a script: where that
/// may do what it likes, its jobs run here.
const BY_CLANG: usize = 3;

/// What a route made: objects by job, kdbs, and what the manifest says.
#[derive(PartialEq)]
struct Made {
    objects: BTreeMap<String, Digest>,
    kdbs: Vec<(String, Vec<u8>)>,
    records: String,
}

/// Reads the objects in some directories, and what was made of them.
fn made(project: &Project, objects: &[&str], out: &str) -> Made {
    let files = objects.iter().flat_map(|dir| project.tree(&format!("{dir}/v1/objects")));
    let mut objects = BTreeMap::new();
    for (name, file) in files {
        let twice = objects.insert(name.clone(), object(&file));
        assert!(twice.is_none(), "{name} was made twice");
    }
    assert_eq!(objects.len(), JOBS);
    let records = ["manifest.json", "kernels.jsonl"].map(|name| format!("{out}/{name}"));
    let records = records.map(|name| project.text(&name)).concat();
    Made { objects, kdbs: project.tree(&format!("{out}/kdb")), records }
}

/// The digest of the object in a file of the store, which says it itself.
fn object(file: &[u8]) -> Digest {
    let header = file.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
    let info: Value = serde_json::from_slice(&file[..header]).expect("of JSON");
    let size = info["size"].as_u64().expect("a size") as usize;
    let digest = Digest::of(&file[header..header + size]);
    assert_eq!(info["sha256"], digest.to_string());
    digest
}

#[test]
fn all_routes_make_the_same_bytes() {
    let project = Project::with_paths_in_objects(&["-DTYPE=int -DN=1"]);
    project.add_compiler("#!/bin/sh\nexec hipcc \"$@\"\n");
    let toolchain = ["--hipcc", "bin/hipcc"];
    plan(&project, &[&toolchain[..], &["--target", TARGETS]].concat());
    let build = |out: &str, cache: &str, more: &[&str]| {
        let arguments = [&["build", "--out", out, "--cache-dir", cache][..], &toolchain, more];
        project.run(&arguments.concat()).expect_code(0)
    };
    let inputs = ["--manifest", "kernels.toml", "--target", TARGETS, "--jobs", "1"];
    build("one", "c1", &inputs);
    let expected = made(&project, &["c1"], "one");
    assert_eq!(expected.kdbs.len(), 2);

    // Each shard as on a machine of its own, put together in two orders.
    for index in 1..=3 {
        let (out, cache, shard) = (format!("s{index}"), format!("cs{index}"), format!("{index}/3"));
        build(&out, &cache, &["--plan", "plan", "--jobs", "2", "--shard", &shard]);
    }
    for order in [["s1", "s2", "s3"], ["s3", "s1", "s2"]] {
        fs::remove_dir_all(project.path().join("merged")).ok();
        merge(&project, &order, &[]).expect_code(0);
        assert!(made(&project, &order, "merged") == expected, "{order:?}");
    }

    let casd = Casd::start(&project.path().join("casd"));
    let more = ["--plan", "plan", "--remote", &casd.address(), "--json", "-"];
    let run = build("remote", "cr", &more);
    assert_eq!(run.of_type("build-finished")[0]["remote"], BY_CLANG, "{}", run.stdout);
    assert!(made(&project, &["cr"], "remote") == expected, "remote execution");
}

#[test]
fn a_stored_plan_does_not_depend_on_the_order_of_keys() {
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

/// Files above a directory of headers, and above a source.
#[test]
fn plans_contain_files_included_through_parent_directories() {
    let project = Project::new();
    let manifest = "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
                    include-dirs = [\"deep/inc\"]\n[[kernel]]\nsource = \"sub/k.cl\"\n";
    project.write("kernels.toml", manifest);
    project.write("sub/k.cl", "#include \"../x.h\"\n#include <y.h>\n__kernel void k() {}\n");
    project.write("x.h", "// above the source\n");
    project.write("deep/inc/y.h", "#include \"../z.h\"\n");
    project.write("deep/z.h", "// above the directory of headers\n");
    let target = ["--target", "gfx906"];

    plan(&project, &target);
    let json = ["--json", "-", "--plan", "plan"];
    let build = |more: &[&str]| {
        let run = project.run(&[&["build"][..], &json, more].concat()).expect_code(0);
        started(&run)
    };
    assert_eq!(build(&["--shard", "1/1", "--out", "s", "--cache-dir", "c"]), 1);
    merge(&project, &["s"], &[]).expect_code(0);
    assert_eq!(build(&["--out", "o", "--cache-dir", "c"]), 0, "it is kept");

    let inputs = ["plan", "--manifest", "kernels.toml", "--target", "gfx906"];
    project.run(&[&inputs[..], &["--stage", "staged"]].concat()).expect_code(0);
    let objects = || project.tree("staged/objects").len();
    assert_eq!(objects(), 0);
    tool("sh", &["commands"], &project.path().join("staged"));
    assert_eq!(objects(), 1);
    let source = project.tree("staged/source-0");
    assert!(source.iter().any(|(name, _)| name == "deep/z.h"), "{source:?}");
}
