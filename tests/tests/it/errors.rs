//! Wrong input: one clear error, a hint, the exit code, and no output files.

use crate::support::project::Project;

#[track_caller]
fn check(project: &Project, arguments: &[&str], code: i32, expected: &[&str]) {
    let run = project.run(arguments).expect_code(code);
    for text in expected {
        assert!(run.stderr.contains(text), "`{text}` is not in:\n{}", run.stderr);
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
fn a_network_in_place_of_its_list_is_an_error_that_says_how_to_make_the_list() {
    let arguments = ["dist", "--problems", "resnet50", "--target", "gfx906", "--out", "o"];
    let made = ["no file is called that", "`gfxpack problems resnet50 -o resnet50.txt`"];
    check(&Project::small(), &arguments, 2, &made);
}

#[test]
fn invalid_targets_are_errors_with_the_allowed_form() {
    let project = Project::small();
    check(
        &project,
        &dist(&["--target", "gtx1080"]),
        2,
        &["no GPU of that name is known", "gfx90a@104"],
    );
    check(&project, &dist(&["--target", "gfx90a@x"]), 2, &["no compute-unit count"]);
    check(&project, &dist(&["--target", "gfx906_65"]), 2, &["write gfx906@65", "gfx90641"]);
    check(&project, &dist(&[]), 2, &["no target is given", "--target"]);
    check(
        &project,
        &dist(&["--target", "gfx906:sramecc+,gfx906:sramecc-"]),
        2,
        &["both are `gfx906.kdb`"],
    );
}

#[test]
fn an_unknown_target_is_an_error_with_compiler_and_remedy() {
    let project = Project::small();
    // A processor that is not out yet, so that no compiler knows it.
    check(
        &project,
        &dist(&["--target", "gfx1999"]),
        2,
        &["for `gfx1999`", "clang ", "does not know it", "no `gfx1999` is known", "hipcc"],
    );
}

#[test]
fn errors_in_manifests_have_file_and_line() {
    let project = Project::small();
    let good = std::fs::read_to_string(project.path().join("kernels.toml")).unwrap();
    let with = |from: &str, to: &str, expected: &[&str]| {
        assert!(good.contains(from));
        project.write("kernels.toml", &good.replacen(from, to, 1));
        check(&project, &dist(&["--target", "gfx906"]), 2, expected);
    };
    let later = ["kernels.toml:2: failed to read manifest format 2", "use a gfxpack that knows"];
    with("format = 1", "format = 2\nnew = 1", &later);
    with("license =", "licence =", &["kernels.toml:", "unknown field `licence`"]);
    with("license =", "reader = \"rocfft\"\nlicense =", &["unknown reader `rocfft`"]);
    with(
        "src/add.cpp",
        "src/gone.cpp",
        &["kernels.toml:12: failed to find `./src/gone.cpp`", "relative to the manifest"],
    );
    with("\"MIT\"", "\"foo bar\"", &["kernels.toml:4: failed to accept licence `foo bar`"]);
    with("-DGROUP=64", "-mcpu=gfx900", &["failed to accept option `-mcpu=gfx900`"]);
    with("src/add.cpp", "src/add.f90", &["failed to tell the language of `src/add.f90`"]);
    with("-DFACTOR=3", "-DFACTOR=2", &["kernels.toml:", "already at kernels.toml:"]);
    with("-DGROUP=64", "-DGROUP='64'", &["MIOpen could never find it"]);
    with("-DGROUP=64", "-o /etc/passwd", &["kernels.toml:", "failed to accept option `-o`"]);
    with("\"include\"", "\"none\"", &["kernels.toml:10: failed to find `./none`"]);
    with("{ VALUE = 7 }", "{ VALUE = 7 }\nexclude = [{ VALUE = 7 }]", &["no combination is left"]);
    project.write("kernels.toml", &good);
    project.write("below/kernels.toml", &good.replace("src/scale.cl", "scale.cl"));
    for (path, text) in
        [("src/add.cpp", ""), ("scale.cl", "#include \"../up.h\"\n"), ("src/fill.s", "")]
    {
        project.write(&format!("below/{path}"), text);
    }
    project.write("up.h", "");
    std::fs::create_dir(project.path().join("below/include")).unwrap();
    let below = ["dist", "--manifest", "below/kernels.toml", "--target", "gfx906", "--out", "o"];
    let run = project.run(&below).expect_code(100);
    assert!(
        run.stderr.contains("it reads `../up.h`, which is not among the sources"),
        "{}",
        run.stderr
    );
    std::fs::remove_dir_all(project.path().join("o")).unwrap();
    std::fs::remove_file(project.path().join("kernels.toml")).unwrap();
    check(&project, &dist(&["--target", "gfx906"]), 2, &["failed to read `kernels.toml`"]);
}

#[test]
fn a_cache_directory_that_clang_can_not_use_is_an_error() {
    let project = Project::small();
    let mut arguments = dist(&["--target", "gfx906"]);
    arguments.extend(["--cache-dir", "c%20d"]);
    check(&project, &arguments, 2, &["`%`", "give another cache directory with --cache-dir"]);
}

#[test]
fn toolchains_that_do_not_exist_are_errors_that_name_them() {
    let project = Project::small();
    let with = |more: &[&str], expected: &[&str]| {
        let mut arguments = dist(&["--target", "gfx906"]);
        arguments.extend(more);
        check(&project, &arguments, 2, expected);
    };
    with(&["--hipcc", "/no/such/hipcc"], &["failed to find `/no/such/hipcc`"]);
    with(&["--clang", "/no/such/clang"], &["failed to find `/no/such/clang`"]);
    let libraries = ["failed to find device libraries in `/no/such`", "give --device-libs"];
    with(&["--device-libs", "/no/such"], &libraries);
    with(&["--device-libs", "src"], &["failed to find device libraries in `src`"]);
    check(&project, &["targets", "--device-libs", "/no/such"], 2, &libraries);
    with(&["--rocm-path", "/no/such"], &["ROCm installation `/no/such`", "give --rocm-path"]);
    let mut command = project.command(&dist(&["--target", "gfx906"]));
    command.env("HIPCC", "/no/such/hipcc");
    let run = crate::support::project::finish(command).expect_code(2);
    assert!(run.stderr.contains("`/no/such/hipcc`, which HIPCC names"), "{}", run.stderr);
    let mut command = project.command(&dist(&["--target", "gfx906"]));
    command.env("PATH", "/nowhere");
    let run = crate::support::project::finish(command);
    // A ROCm installation under /opt would be found all the same.
    if !std::path::Path::new("/opt/rocm/bin/hipcc").exists() {
        let run = run.expect_code(2);
        assert!(run.stderr.contains("failed to find hipcc"), "{}", run.stderr);
        assert!(run.stderr.contains("apt-get install hipcc"), "{}", run.stderr);
    }
}

#[test]
fn errors_in_key_lists_have_file_and_line() {
    let project = Project::small();
    let keys = |text: &str, more: &[&str], expected: &[&str]| {
        project.write("keys.jsonl", text);
        let mut arguments =
            vec!["dist", "--keys", "keys.jsonl", "--out", "o", "--target", "gfx906"];
        arguments.extend(more);
        check(&project, &arguments, 2, expected);
    };
    let good =
        r#"{"kernel_name":"scale.cl.o","kernel_args":" -DGROUP=64 -DFACTOR=1 -mcpu=gfx906"}"#;
    let dir = ["--source-dir", "src"];
    keys(good, &[], &["no --source-dir is given"]);
    keys(good, &["--source-dir", "none"], &["failed to find the source directory `none`"]);
    keys(good, &["--source-dir", "kernels.toml"], &["`kernels.toml`: it is a file"]);
    let unknown = [&dir[..], &["--target", "gfx1999"]].concat();
    keys(good, &unknown, &["no processor of that name is known here", "gfxpack targets"]);
    keys(&format!("{good}\n{good}"), &dir, &["keys.jsonl:2:", "already at keys.jsonl:1"]);
    // JSON's reader is given a line at a time, and would call it the first.
    let run = {
        project.write("keys.jsonl", "\n{\"kernel_name\":1}\n");
        let arguments = ["dist", "--keys", "keys.jsonl", "--source-dir", "src", "--out", "o"];
        project.run(&[&arguments[..], &["--target", "gfx906"]].concat()).expect_code(2)
    };
    assert!(run.stderr.contains("keys.jsonl:2: failed to parse"), "{}", run.stderr);
    assert!(!run.stderr.contains("line 1"), "{}", run.stderr);
    keys(&format!("\u{feff}{}", good.replace("gfx906", "gfx908")), &dir, &["a key for gfx906"]);
    keys("SQLite format 3\0", &dir, &["it is a kdb", "gfxpack kdb list --keys"]);
    keys("BZh91AY&SY", &dir, &["it is packed", "gfxpack harvest"]);
    keys(&good.replace("gfx906", "gfx908"), &dir, &["failed to find a key for gfx906", "gfx908"]);
    keys(&good.replace("scale", "gone"), &dir, &["keys.jsonl:1: failed to find source `gone.cl`"]);
    keys(&good.replace("-DFACTOR=1", "-DFACTOR='1'"), &dir, &["MIOpen could never find it"]);
    project.write("src/deep/scale.cl", "// another\n");
    keys(good, &dir, &["2 different files have that name", "deep/scale.cl"]);
}

#[test]
fn files_that_are_no_kdbs_are_errors_that_name_them() {
    let project = Project::new();
    check(&project, &["kdb", "info", "none.kdb"], 2, &["none.kdb"]);
    project.write("gfx906.kdb", "version https://git-lfs.github.com/spec/v1\n");
    check(&project, &["kdb", "list", "gfx906.kdb"], 2, &["gfx906.kdb"]);
    check(&project, &["kdb", "verify", "gfx906.kdb"], 101, &["failed to verify `gfx906.kdb`"]);
    project.write("kernels.kdb", "x");
    check(&project, &["package", "kernels.kdb", "--out", "o"], 2, &["failed to tell the target"]);
    check(
        &project,
        &["package", "x/*.kdb", "--out", "o"],
        2,
        &["failed to read `x/*.kdb`: No such"],
    );
    check(
        &project,
        &["package", ".", "--out", "o"],
        2,
        &["`.`: it is a directory", "the files in"],
    );
    project.write("gfx90a.kdb", "");
    check(&project, &["kdb", "info", "gfx90a.kdb"], 2, &["hint: it is empty"]);
}

#[test]
fn options_of_packages_are_checked_before_anything_is_compiled() {
    let project = Project::small();
    let with = |more: &[&str], expected: &[&str]| {
        let mut arguments = dist(&["--target", "gfx906"]);
        arguments.extend(more);
        check(&project, &arguments, 2, expected);
        assert_eq!(project.objects(), 0, "nothing is compiled");
    };
    with(&["--name-template", "kernels"], &["{gfx}"]);
    with(&["--layout", "relative"], &["no absolute path", "therock-VERSION"]);
    with(&["--layout", &format!("/{}", "p".repeat(256))], &["longer than 255 bytes"]);
    with(&["--layout", "therock"], &["write it as therock-7.11"]);
    with(&["--report", "x", "--json", "./x"], &["two options would write `x`"]);
    with(&["--report", "x", "--report", "y.html"], &["failed to write both `x` and `y.html`"]);
    with(&["--compression", "lzma"], &["write xz, gz or zst"]);
    with(&["--package-version", "1 2"], &["1 2"]);
    with(&["--name-template", "Kernels_{gfx}"], &["Kernels_gfx906"]);
    with(&["--package-version", "1-"], &["write it as 3.4.0 or 3.4.0-2"]);
    with(&["--license", "foo bar"], &["--license", "an SPDX licence expression"]);
}

#[test]
fn compute_units_that_no_device_has_are_warned_of() {
    let project = Project::small();
    // Whoever means 104 compute units writes gfx90a68 or gfx90a@104.
    let plan = ["plan", "--manifest", "kernels.toml", "--target", "gfx90a104"];
    let run = project.run(&plan).expect_code(0);
    assert!(run.stderr.contains("warning: no gfx90a with 260 compute units"), "{}", run.stderr);
    let known = project.run(&[&plan[..4], &["gfx90a68"]].concat()).expect_code(0);
    assert!(!known.stderr.contains("compute units"), "{}", known.stderr);
}

#[test]
fn options_without_effect_are_refused() {
    let project = Project::small();
    let target = ["--target", "gfx906"];
    let shard = ["build", "--manifest", "kernels.toml", "--out", "o", "--shard", "1/2"];
    check(&project, &[&shard[..], &target].concat(), 2, &["of a stored plan", "--plan PLAN"]);
    let arguments = [&dist(&["--source-dir", "src"])[..], &target].concat();
    let run = project.run(&arguments).expect_code(2);
    assert!(run.stderr.contains("no keys are given"), "{}", run.stderr);
    // Days and gigabytes, most likely.
    check(&project, &["cache", "gc", "--max-age", "30"], 2, &["with its unit", "30d"]);
    check(&project, &["cache", "gc", "--max-size", "20"], 2, &["with its unit", "20GB"]);
    check(&project, &["caches", "clear", "--older-than", "30"], 2, &["with its unit", "30d"]);
    let fft = ["lookup", "--target", "gfx90a", "--system-dir", "o", "fft_none"];
    check(&project, &fft, 2, &["--system-dir", "beside its library", "--rocfft"]);
    // Text goes to stdout for `-`, a database can't.
    let whole = ["kdb", "merge", "a.kdb", "b.kdb", "-o", "-"];
    check(&project, &whole, 2, &["standard output can't take it", "./- is a file called -"]);
    project.write("keys.jsonl", r#"{"kernel_name":"a.cl.o","kernel_args":" -mcpu=gfx906"}"#);
    let directory = ["harvest", "keys.jsonl", "-o", "src"];
    check(&project, &directory, 2, &["failed to write `src`: it is a directory"]);
    let keys = project.run(&["harvest", "keys.jsonl", "-o", "-"]).expect_code(0).stdout;
    assert!(keys.contains(r#""kernel_name":"a.cl.o""#), "{keys}");
    assert!(!project.path().join("-").exists());
}

#[test]
fn check_is_an_error_if_no_library_is_asked() {
    let project = Project::small();
    let expected =
        ["failed to use --check", "--problems FILE or --plans FILE", "gfxpack kdb check"];
    check(&project, &dist(&["--target", "gfx906", "--check"]), 2, &expected);
    check(&project, &["dist", "--plan", "stored", "--out", "o", "--check"], 2, &expected);
}

#[test]
fn paths_that_do_not_exist_are_errors_that_name_them() {
    let project = Project::small();
    for command in [&["verify", "none"][..], &["repo", "none"], &["detect", "--sysfs", "none"]] {
        check(&project, command, 2, &["`none`"]);
    }
    let none = project.run(&["kdb", "verify", "none.kdb"]).expect_code(2).stderr;
    assert_eq!(none.matches("failed to read kdb `none.kdb`").count(), 1, "{none}");
    let out = ["dist", "--manifest", "kernels.toml", "--target", "gfx906", "--out", "kernels.toml"];
    check(
        &project,
        &out,
        2,
        &["failed to create `kernels.toml`", "is where a directory should be"],
    );
    project.write("a/kdb", "");
    let out = ["dist", "--manifest", "kernels.toml", "--target", "gfx906", "--out", "a"];
    let run = project.run(&out).expect_code(2);
    assert!(run.stderr.contains("failed to create `a/kdb`"), "{}", run.stderr);
    let mut command = project.command(&["plan", "--manifest", "kernels.toml", "--target=gfx906"]);
    command.env("TMPDIR", "/no/such");
    let run = crate::support::project::finish(command).expect_code(1);
    assert!(run.stderr.contains("temporary directory in `/no/such`"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: set TMPDIR to a directory"), "{}", run.stderr);
}

#[test]
fn keys_cannot_give_commands_to_ci_services() {
    let project = Project::small();
    std::fs::create_dir(project.path().join("s")).unwrap();
    project.write("s/k.cl", "__kernel void k(__global int *a) { a[0] = 1; }\n");
    let key = |options: &str| {
        let args = format!("{options} -mcpu=gfx906");
        serde_json::json!({ "kernel_name": "k.cl.o", "kernel_args": args }).to_string() + "\n"
    };
    let keys =
        [" -DB=\"x\n::add-mask::y\u{1b}[31m", " -zzz\n  ::error::y", " -DC=1\n##[error]z"].map(key);
    project.write("k", &keys.concat());
    let args = ["build", "--keys", "k", "--source-dir", "s", "--target", "gfx906", "--out", "o"];
    let run = project.run(&[&args[..], &["--allow-partial", "-v"]].concat());
    let printed = format!("{}{}", run.stdout, run.stderr);
    assert!(printed.contains("add-mask"), "{printed}");
    for line in printed.lines() {
        assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{printed}");
        assert!(!line.contains('\u{1b}'), "{printed:?}");
    }
}
