//! Wrong input: one clear error, a hint, the exit code, and nothing written.

use gfxpack_tests::project::Project;

#[track_caller]
fn check(project: &Project, arguments: &[&str], code: i32, says: &[&str]) {
    let run = project.run(arguments).expect_code(code);
    for words in says {
        assert!(run.stderr.contains(words), "`{words}` is not in:\n{}", run.stderr);
    }
    assert!(run.stderr.contains("hint: "), "{}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert!(!project.path().join("o").exists(), "nothing is written");
}

fn dist<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["dist", "--manifest", "kernels.toml", "--out", "o"];
    arguments.extend(more);
    arguments
}

#[test]
fn targets_that_are_none() {
    let project = Project::small();
    check(
        &project,
        &dist(&["--target", "gtx1080"]),
        2,
        &["it names no gfx processor", "gfx90a@104"],
    );
    check(&project, &dist(&["--target", "gfx90a@x"]), 2, &["no compute-unit count"]);
    check(&project, &dist(&[]), 2, &["no target is given", "--target"]);
    check(
        &project,
        &dist(&["--target", "gfx906:sramecc+,gfx906:sramecc-"]),
        2,
        &["both are `gfx906.kdb`"],
    );
}

#[test]
fn a_target_that_the_compiler_does_not_know_names_compiler_and_remedy() {
    let project = Project::small();
    // A processor that is not out yet, so that no compiler knows it.
    check(
        &project,
        &dist(&["--target", "gfx1999"]),
        2,
        &["for `gfx1999`", "clang ", "does not know it", "hipcc"],
    );
}

#[test]
fn manifests_that_are_wrong_are_told_with_file_and_line() {
    let project = Project::small();
    let good = std::fs::read_to_string(project.path().join("kernels.toml")).unwrap();
    let with = |from: &str, to: &str, says: &[&str]| {
        assert!(good.contains(from));
        project.write("kernels.toml", &good.replacen(from, to, 1));
        check(&project, &dist(&["--target", "gfx906"]), 2, says);
    };
    with("format = 1", "format = 2", &["kernels.toml:2: failed to read manifest format 2"]);
    with("license =", "licence =", &["kernels.toml:", "unknown field `licence`"]);
    with(
        "src/add.cpp",
        "src/gone.cpp",
        &["kernels.toml:12: failed to find source `./src/gone.cpp`"],
    );
    with("src/add.cpp", "src/add.f90", &["failed to tell the language of `src/add.f90`"]);
    with("-DFACTOR=3", "-DFACTOR=2", &["kernels.toml:", "stands at kernels.toml:"]);
    with("-DGROUP=64", "-DGROUP='64'", &["MIOpen could never find it"]);
    with("-DGROUP=64", "-o /etc/passwd", &["kernels.toml:", "failed to accept option `-o`"]);
    with("\"include\"", "\"none\"", &["failed to find source `./none`"]);
    with("{ VALUE = 7 }", "{ VALUE = 7 }\nexclude = [{ VALUE = 7 }]", &["no combination is left"]);
    std::fs::remove_file(project.path().join("kernels.toml")).unwrap();
    check(&project, &dist(&["--target", "gfx906"]), 2, &["failed to read `kernels.toml`"]);
}

#[test]
fn toolchains_that_are_none() {
    let project = Project::small();
    let with = |more: &[&str], says: &[&str]| {
        let mut arguments = dist(&["--target", "gfx906"]);
        arguments.extend(more);
        check(&project, &arguments, 2, says);
    };
    with(&["--hipcc", "/no/such/hipcc"], &["failed to find `/no/such/hipcc`"]);
    with(&["--clang", "/no/such/clang"], &["failed to find `/no/such/clang`"]);
    let mut command = project.command(&dist(&["--target", "gfx906"]));
    command.env("PATH", "/nowhere");
    let run = gfxpack_tests::project::finish(command);
    // A ROCm installation under /opt would be found all the same.
    if !std::path::Path::new("/opt/rocm/bin/hipcc").exists() {
        let run = run.expect_code(2);
        assert!(run.stderr.contains("failed to find hipcc"), "{}", run.stderr);
        assert!(run.stderr.contains("apt-get install hipcc"), "{}", run.stderr);
    }
}

#[test]
fn key_lists_that_are_wrong() {
    let project = Project::small();
    let keys = |text: &str, more: &[&str], says: &[&str]| {
        project.write("keys.jsonl", text);
        let mut arguments =
            vec!["dist", "--keys", "keys.jsonl", "--out", "o", "--target", "gfx906"];
        arguments.extend(more);
        check(&project, &arguments, 2, says);
    };
    let good =
        r#"{"kernel_name":"scale.cl.o","kernel_args":" -DGROUP=64 -DFACTOR=1 -mcpu=gfx906"}"#;
    let dir = ["--source-dir", "src"];
    keys(good, &[], &["no --source-dir is given"]);
    keys(good, &["--source-dir", "none"], &["failed to find the source directory `none`"]);
    keys(&format!("{good}\n{good}"), &dir, &["keys.jsonl:2:", "stands at keys.jsonl:1"]);
    keys("{\"kernel_name\":1}", &dir, &["keys.jsonl:1: failed to parse"]);
    keys(&good.replace("gfx906", "gfx908"), &dir, &["failed to find a key for gfx906", "gfx908"]);
    keys(&good.replace("scale", "gone"), &dir, &["keys.jsonl:1: failed to find source `gone.cl`"]);
    keys(&good.replace("-DFACTOR=1", "-DFACTOR='1'"), &dir, &["MIOpen could never find it"]);
    keys("", &dir, &["failed to find any kernel"]);
    project.write("src/deep/scale.cl", "// another\n");
    keys(good, &dir, &["2 different files have that name", "deep/scale.cl"]);
}

#[test]
fn kdbs_that_are_none() {
    let project = Project::new();
    check(&project, &["kdb", "info", "none.kdb"], 2, &["none.kdb"]);
    project.write("gfx906.kdb", "version https://git-lfs.github.com/spec/v1\n");
    check(&project, &["kdb", "list", "gfx906.kdb"], 2, &["gfx906.kdb"]);
    check(&project, &["kdb", "verify", "gfx906.kdb"], 101, &["failed to verify `gfx906.kdb`"]);
    project.write("kernels.kdb", "x");
    check(&project, &["package", "kernels.kdb", "--out", "o"], 2, &["failed to tell the target"]);
}

#[test]
fn options_of_packages_are_checked_before_anything_is_compiled() {
    let project = Project::small();
    let with = |more: &[&str], says: &[&str]| {
        let mut arguments = dist(&["--target", "gfx906"]);
        arguments.extend(more);
        check(&project, &arguments, 2, says);
        assert_eq!(project.objects(), 0, "nothing is compiled");
    };
    with(&["--name-template", "kernels"], &["{gfx}"]);
    with(&["--prefix", "relative"], &["no absolute path"]);
    with(&["--layout", "fhs", "--rocm-version", "6.0"], &["--rocm-version"]);
    with(&["--deb-compression", "lzma"], &["write xz, gz or zst"]);
    with(&["--package-version", "1 2"], &["1 2"]);
    with(&["--name-template", "Kernels_{gfx}"], &["Kernels_gfx906"]);
    with(&["--revision", "1-2"], &["1-2"]);
}
