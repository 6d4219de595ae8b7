//! Keys without a GPU: fetches Debian's libMIOpen, asks it for its kernels, compiles its own
//! sources, and checks that it finds them.

use crate::support::miopen::CACHE;
use crate::support::project::{Project, Run, tool};

const FORWARD: &str = "conv -n 1 -c 16 -H 14 -W 14 -k 16 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -F 1";
const HALF: &str = "MIOpenDriver convfp16 -n 2 -c 16 -H 14 -W 14 -k 32 -y 3 -x 3 -p 1 -q 1 -F 0";

/// The run; none where Debian's archive can't be reached.
#[expect(clippy::print_stderr, reason = "a test that is not run says so")]
fn run(project: &Project, arguments: &[&str]) -> Option<Run> {
    let mut args = arguments.to_vec();
    args.extend(["--miopen", "debian:sid", "--cache-dir", CACHE]);
    let run = project.run(&args);
    let away = ["found no mirror of Debian's archive", "failed to fetch `"];
    if away.iter().any(|away| run.stderr.contains(away)) {
        eprintln!("skipped: {}", run.stderr);
        return None;
    }
    Some(run)
}

fn keys(project: &Project, file: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(project.path().join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_keys_do_not_depend_on_the_order_of_problems_and_the_number_of_workers() {
    let project = Project::new();
    project.write("a.txt", &format!("{FORWARD}\n{HALF}\n"));
    project.write("b.txt", &format!("# another order\n{HALF}\n{FORWARD}\n{FORWARD}\n"));
    let ask = |list: &str, jobs: &str, out: &str| {
        let target = ["--target", "gfx1100@48", "--jobs", jobs, "--out", out];
        run(&project, &[&["ask", "--problems", list][..], &target].concat())
    };
    let Some(first) = ask("a.txt", "1", "a.jsonl") else { return };
    first.expect_code(0);
    ask("b.txt", "2", "b.jsonl").unwrap().expect_code(0);
    let keys = keys(&project, "a.jsonl");
    assert_eq!(keys, self::keys(&project, "b.jsonl"));
    let naive = |problem: &str, way: &str| {
        let wanted = |key: &&serde_json::Value| {
            key["kernel_name"] == "naive_conv.cpp.o"
                && key["uses"].as_str().unwrap().split(',').any(|one| one == way)
                && key["problems"].to_string().contains(problem)
        };
        keys.iter().find(wanted).expect("every convolution has a naive kernel")
    };
    for problem in ["conv -n 1", "convfp16 -n 2"] {
        let (search, immediate) = (naive(problem, "search"), naive(problem, "immediate"));
        for key in [search, immediate] {
            assert!(key["kernel_args"].as_str().unwrap().ends_with(" -mcpu=gfx1100"), "{key}");
            assert!(!key["functions"].as_array().unwrap().is_empty(), "{key}");
        }
        assert_ne!(search["kernel_args"], immediate["kernel_args"], "its form is another");
    }
}

#[test]
fn a_library_that_names_no_assembler_of_this_machine_is_asked_with_one_and_without() {
    let project = Project::new();
    project.write("list.txt", &format!("{FORWARD}\n"));
    let ask = ["ask", "--problems", "list.txt", "--target", "gfx908@120", "--out", "keys.jsonl"];
    let Some(asked) = run(&project, &ask) else { return };
    asked.expect_code(0);
    let keys = keys(&project, "keys.jsonl");
    let named = |end: &str| {
        keys.iter().any(|key| key["kernel_name"].as_str().is_some_and(|name| name.ends_with(end)))
    };
    assert!(named(".s.o"), "{keys:?}");
    // Debian's MIOpen 3.4.0 considers this one only if it finds no assembler.
    assert!(named("MIOpenConv1x1J1.cl.o"), "{keys:?}");
}

#[test]
fn the_library_finds_kernels_built_from_its_own_sources() {
    let project = Project::new();
    project.write("list.txt", &format!("{FORWARD}\n"));
    let dist = ["dist", "--check", "--problems", "list.txt", "--target", "gfx906_60", "--out", "o"];
    let packages = ["--format", "tar.gz", "--json", "-"];
    let Some(built) = run(&project, &[&dist[..], &packages].concat()) else { return };
    let built = built.expect_code(0);
    let looked = &built.of_type("kdb-checked")[0];
    assert_eq!((&looked["missed"], &looked["functions_missing"]), (&0.into(), &0.into()));
    assert!(looked["without_source"].as_u64().unwrap() > 0, "{looked}");
    assert_eq!(looked["not_built"], 0, "{looked}");
    let coverage = &built.of_type("coverage")[0];
    assert_eq!(coverage["built"], coverage["with_source"], "{coverage}");
    assert!(coverage["built"].as_u64().unwrap() > 0, "{coverage}");
    let manifest = std::fs::read(project.path().join("o/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let asked = &manifest["targets"][0]["library"]["asked"];
    assert_eq!(asked["problems"][0]["problems"], 1, "{asked}");
    assert_eq!(asked["sha256"].as_str().unwrap().len(), 64, "{asked}");

    let check = ["kdb", "check", "o/kdb/gfx906_60.kdb", "--problems", "list.txt"];
    let checked = run(&project, &[&check[..], &["--json", "-"]].concat()).unwrap();
    let checked = checked.expect_code(0);
    assert_eq!(checked.of_type("kdb-checked")[0]["without_source"], looked["without_source"]);
    let of_problem = &checked.of_type("kdb-check")[0];
    assert!(of_problem["found"].as_u64().unwrap() > 0, "{of_problem}");
    assert_eq!(of_problem["lacking"].as_array().unwrap().len(), 0, "{of_problem}");
    // A kernel that is left out is not counted as one without a source.
    let listed = project.run(&["kdb", "list", "--keys", "o/kdb/gfx906_60.kdb"]).expect_code(0);
    let mut key: serde_json::Value =
        serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    (key["target"], key["absent"]) = ("gfx906@60".into(), "refused".into());
    project.write("skip.jsonl", &key.to_string());
    let skip = ["--skip-refused", "skip.jsonl", "--json", "-"];
    let without = run(&project, &[&dist[..6], &["--out", "p"], &skip].concat()).unwrap();
    let counts = &without.expect_code(0).of_type("kdb-checked")[0];
    assert_eq!((&counts["missed"], &counts["not_built"]), (&0.into(), &1.into()), "{counts}");
    assert_eq!(counts["without_source"], looked["without_source"], "{counts}");

    let removed = "delete from kern_db where kernel_name = 'naive_conv.cpp.o'";
    tool("sqlite3", &["o/kdb/gfx906_60.kdb", removed], project.path());
    let checked = run(&project, &check).unwrap().expect_code(101);
    assert!(checked.stderr.contains("missed `naive_conv.cpp.o"), "{}", checked.stderr);
    assert!(checked.stderr.contains("--source-dir for kernels whose source"), "{}", checked.stderr);
}
