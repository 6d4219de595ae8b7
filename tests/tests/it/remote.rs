//! Builds on a real remote-execution service give the bytes of a local build, whatever happens to
//! the service meanwhile.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::support::casd::Casd;
use crate::support::project::{Project, Run, finish, tool};
use serde_json::Value;

const BUILD: &[&str] =
    &["build", "--manifest", "kernels.toml", "--target", "gfx906_60", "--json", "-"];

/// How many kernels the project has.
const KERNELS: usize = 7;

fn project() -> Project {
    Project::with_paths_in_objects(&[])
}

/// Builds into a directory with a cache of its own.
fn build(project: &Project, name: &str, more: &[&str]) -> Run {
    let mut command = project.command(BUILD);
    command.args(["--out", name]).args(more);
    command.env("GFXPACK_CACHE_DIR", project.path().join(format!("cache-{name}")));
    finish(command)
}

/// The kdb of a local build.
fn local() -> &'static [u8] {
    static KDB: OnceLock<Vec<u8>> = OnceLock::new();
    KDB.get_or_init(|| {
        let project = project();
        build(&project, "local", &[]).expect_code(0);
        kdb(&project, "local")
    })
}

fn kdb(project: &Project, name: &str) -> Vec<u8> {
    fs::read(project.path().join(name).join("kdb/gfx906_60.kdb")).unwrap()
}

/// The jobs that a service made, and of those the ones that it had already.
fn remote(run: &Run) -> (usize, usize) {
    let finished = run.of_type("job-finished");
    let remote: Vec<&Value> =
        finished.iter().map(|job| &job["remote"]).filter(|remote| !remote.is_null()).collect();
    (remote.len(), remote.iter().filter(|remote| remote["cached"] == true).count())
}

fn service(project: &Project) -> Casd {
    Casd::start(&project.path().join("casd"))
}

#[test]
fn a_remote_build_gives_the_bytes_of_a_local_one_and_is_then_cached() {
    let project = project();
    let casd = service(&project);
    let address = casd.address();
    let first = build(&project, "first", &["--remote", &address]).expect_code(0);
    assert_eq!(remote(&first), (KERNELS, 0), "{}", first.stderr);
    assert_eq!(first.of_type("build-finished")[0]["remote"], KERNELS);
    // What all jobs may read is sent once, and no whole directories of headers.
    let blobs = tool("find", &["casd/store/cas/objects", "-type", "f"], project.path());
    assert!(blobs.lines().count() < 2_000, "{}", blobs.lines().count());
    let again = build(&project, "again", &["--remote", &address, "--remote-cache-only"]);
    assert_eq!(remote(&again.expect_code(0)), (KERNELS, KERNELS));
    assert!(local() == kdb(&project, "first"));
    assert!(local() == kdb(&project, "again"));
    // Both share one build: what each made is the same.
    let both = build(&project, "both", &["--remote", &address, "--jobs", "1"]).expect_code(0);
    assert!(local() == kdb(&project, "both"));
    assert_eq!(both.of_type("build-queued")[0]["workers"], 1 + 32);

    // What a service lost or changed is made again.
    // Code objects, which begin as every ELF file does; programs are larger.
    let objects: Vec<PathBuf> = project
        .tree("casd/store/cas/objects")
        .into_iter()
        .filter(|(_, bytes)| bytes.starts_with(b"\x7fELF") && bytes.len() < 50_000)
        .map(|(name, _)| casd.objects().join(name))
        .collect();
    assert!(objects.len() >= KERNELS - 1, "{objects:?}");
    for (number, object) in objects.iter().enumerate() {
        if number % 2 == 0 {
            fs::remove_file(object).unwrap();
        } else {
            let mut bytes = fs::read(object).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            // Another file in its place: the old one may be read only.
            fs::remove_file(object).unwrap();
            fs::write(object, bytes).unwrap();
        }
    }
    let mended = build(&project, "mended", &["--remote", &address]).expect_code(0);
    assert!(local() == kdb(&project, "mended"), "{}", mended.stdout);
}

#[test]
fn sources_are_not_found_by_the_name_of_a_workers_directory() {
    let project = project();
    let source = project.text("src/scale.cl");
    let asks = "#if __has_include(\"../../src/src/scale.cl\")\n#error found\n#endif\n";
    project.write("src/scale.cl", &(asks.to_owned() + &source));
    let casd = service(&project);
    let run = build(&project, "remote", &["--remote", &casd.address()]).expect_code(0);
    assert_eq!(remote(&run).0, KERNELS - 2, "{}", run.stderr);
    assert!(local() == kdb(&project, "remote"));
}

#[test]
fn a_refused_kernel_has_the_compilers_output_every_time() {
    let project = project();
    project.write("src/scale.cl", "#ifdef FACTOR\n#error this one is broken\n#endif\n");
    let casd = service(&project);
    // The second time the service remembers the failure.
    for name in ["one", "two"] {
        let run = build(&project, name, &["--remote", &casd.address()]).expect_code(100);
        let failed = run.of_type("job-failed");
        assert_eq!(failed.len(), 2);
        for job in &failed {
            let output = job["output"].as_str().unwrap();
            assert!(output.contains("error: this one is broken"), "{output}");
            assert!(output.contains("src/scale.cl:2:2"), "{output}");
        }
        assert_eq!(remote(&run).0, KERNELS - 2);
    }
}

#[test]
fn a_service_that_is_killed_and_started_again_loses_nothing() {
    let project = project();
    let mut casd = service(&project);
    let mut command = project.command(BUILD);
    command.args(["--out", "remote", "--remote", &casd.address(), "--remote-jobs", "1"]);
    command.env("GFXPACK_CACHE_DIR", project.path().join("cache-remote"));
    let building = std::thread::scope(|scope| {
        let building = scope.spawn(|| finish(command));
        let made = || project.tree("cache-remote/v1/objects").len();
        while made() < 2 && !building.is_finished() {
            std::thread::yield_now();
        }
        assert!(!building.is_finished(), "it ended before the service was killed");
        casd.kill();
        casd.restart();
        building.join().unwrap()
    });
    let run = building.expect_code(0);
    assert_eq!(remote(&run).0, KERNELS, "{}", run.stderr);
    assert!(local() == kdb(&project, "remote"));
}

#[test]
fn jobs_of_lost_workers_are_run_again() {
    let project = project();
    let casd = service(&project);
    let mut command = project.command(BUILD);
    command.args(["--out", "remote", "--remote", &casd.address(), "--remote-jobs", "1"]);
    command.env("GFXPACK_CACHE_DIR", project.path().join("cache-remote"));
    let run = std::thread::scope(|scope| {
        let building = scope.spawn(|| finish(command));
        let mut lost = 0;
        while lost < 2 && !building.is_finished() {
            lost += usize::from(casd.kill_a_worker());
        }
        let run = building.join().unwrap();
        assert_eq!(lost, 2, "it ended before workers were lost: {}", run.stdout);
        run
    });
    let run = run.expect_code(0);
    assert!(local() == kdb(&project, "remote"));
    assert_eq!(remote(&run).0, KERNELS, "{}", run.stdout);
}

#[test]
fn a_missing_service_is_named_with_a_hint() {
    let project = project();
    let port = crate::support::casd::free_port();
    let address = format!("grpc://127.0.0.1:{port}");
    let run =
        build(&project, "o", &["--remote", &address, "--remote-patience", "1"]).expect_code(1);
    let error = &run.of_type("error")[0];
    assert!(error["messages"][0].as_str().unwrap().contains(&address), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("can be reached"), "{error}");
    for wrong in ["http://host", "grpc://"] {
        let run = build(&project, "o", &["--remote", wrong]).expect_code(2);
        assert!(run.of_type("error")[0]["hint"].as_str().unwrap().contains("grpc://HOST"));
    }
}

#[test]
fn an_interrupted_remote_build_stops_and_goes_on_later() {
    let project = project();
    let casd = service(&project);
    let stop = "\"$@\" & pid=$!
                while [ \"$(find cache/v1/objects -type f 2> /dev/null | wc -l)\" -lt 1 ]; do
                    kill -0 $pid || exit 1; sleep 0.05
                done
                kill -TERM $pid; wait $pid";
    let address = casd.address();
    let more = ["--out", "o", "--remote", &address, "--remote-jobs", "1"];
    let shell = project.script(stop, &[BUILD, &more].concat());
    finish(shell).expect_code(130);
    let run = project.run(&[BUILD, &["--out", "o", "--remote", &casd.address()]].concat());
    let finished = &run.expect_code(0).of_type("build-finished")[0];
    assert!(finished["cached"].as_u64().unwrap() >= 1, "{finished}");
}
