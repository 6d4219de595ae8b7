//! Kernel caches that `dist` makes for plans: the real librocfft finds every kernel in them, in the
//! paths of their packages, and damaged caches cost no plan that works without them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::miopen::{CACHE, debian_rocfft, probe};
use crate::support::project::{Project, Run, tool};
use gfxpack_rocfft::{CheckReport, InstalledCache, check};
use gfxpack_stock_library::{Library, LibrarySource};
use serde_json::Value;

use super::{asked, plans, with};

const LINES: [&str; 6] = [
    "c2c sp ip 64",
    "c2c dp op 100 batch 8",
    "r2c sp op 256",
    "c2r dp op 96x32",
    "c2c sp ip 16x32x24 fwd",
    "c2c half ip 128 inv",
];

/// Changes a database by SQL.
fn sql(file: &Path, script: &str) {
    tool("sqlite3", &[file.to_str().unwrap(), script], Path::new("/"));
}

/// Builds packages for Debian of the kernels that the plans of a list want.
fn dist(project: &Project, list: &str, out: &str, more: &[&str]) -> Run {
    let fixed = ["dist", "--plans", list, "--rocfft", "debian:sid", "--layout", "debian"];
    let rest = ["--out", out, "--maintainer", "A <a@example.org>", "--format", "deb"];
    let mut command = project.command(&[&fixed[..], &rest, more].concat());
    // What is fetched is shared with other tests, what is compiled is not.
    fs::create_dir_all(project.path().join("cache")).unwrap();
    let shared = project.path().join("cache/debian");
    if !shared.exists() {
        std::os::unix::fs::symlink(Path::new(CACHE).join("debian"), shared).unwrap();
    }
    command.env("SOURCE_DATE_EPOCH", "1735689600");
    crate::support::project::finish(command)
}

fn check_with(library: &Library, arch: &str, installed: InstalledCache<'_>) -> CheckReport {
    with(library, arch, |options| check(&plans(&LINES), installed, options).unwrap())
}

/// A copy of the library in a root of its own, in which a package is installed.
fn root_with(library: &Library, dir: &Path, package: &Path) -> Library {
    tool("dpkg-deb", &["-x", package.to_str().unwrap(), dir.to_str().unwrap()], Path::new("/"));
    let place = dir.join("usr/lib/x86_64-linux-gnu");
    fs::create_dir_all(&place).unwrap();
    fs::copy(&library.file, place.join("librocfft.so.0")).unwrap();
    Library { file: place.join("librocfft.so.0"), ..library.clone() }
}

#[test]
fn the_library_compiles_nothing_if_the_package_is_installed() {
    let Some(library) = debian_rocfft() else { return };
    let project = Project::new();
    project.write("plans.txt", &LINES.join("\n"));
    let targets = ["--target", "gfx90a,gfx1030", "--check", "--meta", "all"];
    let run = dist(&project, "plans.txt", "o", &targets).expect_code(0);
    assert!(
        run.stderr.contains("rocFFT finds every kernel of 6 plans in o/rocfft/"),
        "{}",
        run.stderr
    );
    for arch in ["gfx90a", "gfx1030"] {
        let package = project.path().join(format!("o/rocfft-kernels-{arch}_1.0.32-1_all.deb"));
        let about = tool("dpkg-deb", &["-f", package.to_str().unwrap()], Path::new("/"));
        for field in [
            "Enhances: librocfft0 (= 6.4.3-",
            "Provides: rocfft-kernel-cache (= ",
            "Conflicts: rocfft-kernel-cache",
            "Replaces: rocfft-kernel-cache",
            &format!("X-ROCm-GPU-Architecture: {arch}"),
        ] {
            assert!(about.contains(field), "{field}: {about}");
        }
        let root = tempfile::tempdir().unwrap();
        let installed = root_with(&library, root.path(), &package);
        let own = check_with(&installed, arch, InstalledCache::Own);
        assert_eq!((own.programs, own.failures.len()), (0, 0), "{arch}");
        let without = check_with(&library, arch, InstalledCache::Nothing);
        assert!(without.programs > 10 && without.failures.is_empty(), "{without:?}");
        // What is for one processor serves no other.
        let other = if arch == "gfx90a" { "gfx1030" } else { "gfx90a" };
        let other = with(&installed, other, |options| {
            check(&plans(&LINES), InstalledCache::Own, options).unwrap()
        });
        assert_eq!(other.failures.len(), 0);
        assert!(other.programs > 10, "{other:?}");
    }
    // For a machine that has both: one file, since this library reads one.
    let both = project.path().join("o/rocfft-kernels-all_1.0.32-1_all.deb");
    let about = tool("dpkg-deb", &["-f", both.to_str().unwrap()], Path::new("/"));
    for field in ["Conflicts: rocfft-kernel-cache", "X-ROCm-GPU-Architecture: gfx1030, gfx90a"] {
        assert!(about.contains(field), "{field}: {about}");
    }
    let root = tempfile::tempdir().unwrap();
    let installed = root_with(&library, root.path(), &both);
    for arch in ["gfx90a", "gfx1030"] {
        let own = check_with(&installed, arch, InstalledCache::Own);
        assert_eq!((own.programs, own.failures.len()), (0, 0), "{arch}");
    }
    project.run(&["verify", "o"]).expect_code(0);
    let files = ["--license", "MIT", "--copyright", "AMD", "--format", "deb", "--layout", "debian"];
    let again = ["package", "o/rocfft/rocfft_kernel_cache_gfx90a.db", "--out", "again"];
    project.run(&[&again[..], &files].concat()).expect_code(0);
    assert!(project.path().join("again/rocfft-kernels-gfx90a_1.0.32-1_all.deb").is_file());
}

#[test]
fn equal_plans_give_equal_bytes_by_every_route() {
    if debian_rocfft().is_none() {
        return;
    }
    let project = Project::new();
    project.write("plans.txt", &LINES[..2].join("\n"));
    project.write("turned.txt", &[LINES[1], LINES[0]].join("\n"));
    let target = ["--target", "gfx906"];
    dist(&project, "plans.txt", "one", &[&target[..], &["--jobs", "1"]].concat()).expect_code(0);
    let file = |out: &str| {
        fs::read(project.path().join(out).join("rocfft/rocfft_kernel_cache_gfx906.db")).unwrap()
    };
    let first = file("one");
    fs::remove_dir_all(project.path().join("cache/v1")).unwrap();
    dist(&project, "turned.txt", "two", &[&target[..], &["--jobs", "2"]].concat()).expect_code(0);
    assert!(file("two") == first, "another order of plans, and two jobs");

    let store = ["plan", "--plans", "plans.txt", "--rocfft", "debian:sid", "--out", "stored"];
    project.run(&[&store[..], &target].concat()).expect_code(0);
    fs::remove_dir_all(project.path().join("cache/v1")).unwrap();
    for shard in ["1/2", "2/2"] {
        let out = format!("shard-{}", &shard[..1]);
        project.run(&["build", "--plan", "stored", "--shard", shard, "--out", &out]).expect_code(0);
    }
    project
        .run(&["merge", "--plan", "stored", "shard-1", "shard-2", "--out", "merged"])
        .expect_code(0);
    assert!(file("merged") == first, "two shards");
}

/// The states of an installed file in which rocFFT compiles what it needs, and
/// those in which plans fail: of the last, none can come from gfxpack.
#[test]
fn damaged_caches_cost_no_plan_and_harmful_rows_are_not_written() {
    let Some(library) = debian_rocfft() else { return };
    let project = Project::new();
    project.write("plans.txt", &LINES.join("\n"));
    dist(&project, "plans.txt", "o", &["--target", "gfx90a"]).expect_code(0);
    let good = project.path().join("o/rocfft/rocfft_kernel_cache_gfx90a.db");
    let whole = fs::read(&good).unwrap();
    let bad = project.path().join("bad.db");
    let sql = |script: &str| {
        fs::write(&bad, &whole).unwrap();
        self::sql(&bad, script);
    };
    let all = check_with(&library, "gfx90a", InstalledCache::Nothing).programs;
    let compiles_all = |what: &str| {
        let checked = check_with(&library, "gfx90a", InstalledCache::File(&bad));
        assert_eq!((checked.failures.len(), checked.programs), (0, all), "{what}");
    };
    fs::write(&bad, &whole[..whole.len() / 2]).unwrap();
    let half = check_with(&library, "gfx90a", InstalledCache::File(&bad));
    assert_eq!(half.failures.len(), 0, "truncated");
    fs::write(&bad, b"garbage").unwrap();
    compiles_all("garbage");
    fs::write(&bad, b"").unwrap();
    compiles_all("an empty file");
    sql("UPDATE cache_v1 SET hip_version = 1");
    compiles_all("another HIP");
    sql("UPDATE cache_v1 SET generator_sum = zeroblob(32)");
    compiles_all("another generator");
    sql("UPDATE cache_v1 SET arch = 'gfx906'");
    compiles_all("another processor");
    sql("DELETE FROM cache_v1");
    compiles_all("no row");
    sql("DROP TABLE cache_v1");
    compiles_all("no table");
    sql("PRAGMA journal_mode=WAL");
    let wal = check_with(&library, "gfx90a", InstalledCache::File(&bad));
    assert_eq!(wal.failures.len(), 0, "in WAL mode");
    fs::remove_file(&bad).unwrap();
    fs::create_dir(&bad).unwrap();
    compiles_all("a directory");
    fs::remove_dir(&bad).unwrap();

    // The driver refuses these, and rocFFT does not go back to its compiler.
    for (what, script) in [
        ("damaged code", "UPDATE cache_v1 SET code = zeroblob(5000)"),
        (
            "code of another kernel",
            "UPDATE cache_v1 SET code = (SELECT code FROM cache_v1 LIMIT 1)",
        ),
    ] {
        sql(script);
        let checked = check_with(&library, "gfx90a", InstalledCache::File(&bad));
        assert!(!checked.failures.is_empty(), "{what}: {checked:?}");
        let named = project.path().join("rocfft_kernel_cache_gfx90a.db");
        fs::copy(&bad, &named).unwrap();
        let package = ["package", named.to_str().unwrap(), "--out", "p", "--license", "MIT"];
        let run = project.run(&package).expect_code(101);
        assert!(run.stderr.contains("rocfft_kernel_cache_gfx90a.db"), "{what}: {}", run.stderr);
        assert!(!project.path().join("p").exists());
    }
}

#[test]
fn errors_in_plans_are_reported() {
    let project = Project::new();
    let refused = |args: &[&str], expected: &str| {
        let run = project.run(args).expect_code(2);
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    };
    project.write("bad.txt", "c2c sp ip 64\nc2c sp ip\n");
    let dist =
        ["dist", "--out", "o", "--target", "gfx90a", "--rocfft", "no-such-directory", "--plans"];
    refused(&[&dist[..], &["bad.txt"]].concat(), "bad.txt:2");
    refused(&[&dist[..], &["none.txt"]].concat(), "none.txt");
    project.write("good.txt", "c2c sp ip 64\n");
    refused(&[&dist[..], &["good.txt"]].concat(), "no-such-directory");
    let exact = ["dist", "--out", "o", "--target", "gfx90a@104", "--plans", "good.txt"];
    refused(&exact, "leave compute units and features out, as --target gfx90a");
    let library = locate_nothing(project.path());
    assert!(library.contains("librocfft"), "{library}");
    let mixed = ["dist", "--out", "o", "--target", "gfx90a", "--plans", "good.txt", "--keys", "x"];
    refused(&mixed, "leave --manifest, --keys, --source-dir and --missing-from out");
}

/// What is said where a directory has no library.
fn locate_nothing(directory: &Path) -> String {
    let empty: PathBuf = directory.join("empty");
    fs::create_dir(&empty).unwrap();
    let source = LibrarySource::Path(empty);
    let error = crate::support::miopen::locate(&gfxpack_rocfft::ROCFFT, &source, directory);
    error.unwrap_err().to_string()
}

/// A message of `lookup` for the library whose directory is `dir`.
fn lookup(project: &Project, args: &[&str], variables: &[(&str, &Path)], code: i32) -> Value {
    let fixed = ["lookup", "--target", "gfx90a", "--json", "-"];
    let mut command = project.command(&[&fixed[..], args].concat());
    command.envs(variables.iter().copied());
    let run = crate::support::project::finish(command).expect_code(code);
    run.of_type("rocfft-lookup")[0].clone()
}

#[test]
fn lookup_and_doctor_agree_with_rocfft() {
    let Some(library) = debian_rocfft() else { return };
    let project = Project::new();
    project.write("plans.txt", "c2c sp ip 64 fwd");
    dist(&project, "plans.txt", "o", &["--target", "gfx90a"]).expect_code(0);
    let file = project.path().join("o/rocfft/rocfft_kernel_cache_gfx90a.db");
    let (answer, kernels) = asked(&library, &plans(&["c2c sp ip 64 fwd"]), "gfx90a");
    let name = &kernels[0].name;
    // As its package installs it, beside a library in a root of its own.
    let own = project.path().join("root/rocfft");
    fs::create_dir_all(&own).unwrap();
    let place = own.with_file_name("librocfft.so.0.1");
    fs::copy(&library.file, &place).unwrap();
    let from = ["--rocfft", "debian:sid", name];

    let installed = [("ROCFFT_RTC_SYS_CACHE_PATH", file.as_path())];
    let out = project.path().join("code");
    let args = [&from[..], &["--out", "code"]].concat();
    let found = lookup(&project, &args, &installed, 0);
    assert_eq!(found["found"], file.to_str().unwrap());
    assert_eq!(found["library"]["hip_version"], answer.hip_version);
    assert_eq!(
        (&found["files"][0]["state"], &found["files"][0]["kernels"]),
        (&"found".into(), &kernels.len().into())
    );
    let key = gfxpack_rocfft::CacheKey {
        kernel_name: name.clone(),
        arch: "gfx90a".to_owned(),
        hip_version: answer.hip_version,
        generator_sum: answer.generator_sum,
    };
    assert_eq!(gfxpack_rocfft::check_row(&key, &fs::read(out).unwrap()), Ok(()));

    // The user's file comes first, and nothing there is asked for what it lacks.
    let user = project.path().join("user.db");
    fs::copy(&file, &user).unwrap();
    let both = [installed[0], ("ROCFFT_RTC_CACHE_PATH", user.as_path())];
    assert_eq!(lookup(&project, &from, &both, 0)["found"], user.to_str().unwrap());
    let missing = lookup(&project, &["--rocfft", "debian:sid", "fft_none"], &both, 3);
    let states: Vec<_> = missing["files"].as_array().unwrap().iter().map(|f| &f["state"]).collect();
    assert_eq!(states, ["no-row", "no-row"]);
    let off = [installed[0], ("ROCFFT_RTC_CACHE_READ_DISABLE", Path::new("1"))];
    assert_eq!(lookup(&project, &from, &off, 3)["found"], Value::Null);

    // A row of another rocFFT, a damaged one, and a file that is none.
    let other = project.path().join("other.db");
    let sql = |script: &str| {
        fs::copy(&file, &other).unwrap();
        self::sql(&other, script);
    };
    let explained = |expected: &str, code: i32| {
        let mut command =
            project.command(&["lookup", "--target", "gfx90a", "--rocfft", "debian:sid", name]);
        command.env("ROCFFT_RTC_SYS_CACHE_PATH", &other);
        let run = crate::support::project::finish(command).expect_code(code);
        assert!(run.stdout.contains(expected), "{expected}: {}", run.stdout);
    };
    sql("UPDATE cache_v1 SET generator_sum = zeroblob(32)");
    explained("it has the kernel of another rocFFT than 1.", 3);
    sql("UPDATE cache_v1 SET hip_version = 1");
    explained("it has the kernel for HIP 1, not", 3);
    sql("UPDATE cache_v1 SET code = zeroblob(5000)");
    // rocFFT takes the row, and fails later.
    explained("the driver refuses it, so that plans fail", 0);
    fs::write(&other, "no database").unwrap();
    explained("other.db", 3);
}

/// A root of a system in which the library is installed, and gfxpack.
fn system(library: &Library, root: &Path) {
    let place = root.join("usr/lib/x86_64-linux-gnu");
    fs::create_dir_all(&place).unwrap();
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    for dir in ["tmp", "proc", "dev"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for (link, to) in [("lib", "usr/lib"), ("lib64", "usr/lib/x86_64-linux-gnu")] {
        std::os::unix::fs::symlink(to, root.join(link)).unwrap();
    }
    let own = library.file.parent().unwrap();
    for dir in library.search_path.iter().map(PathBuf::as_path).chain([own]) {
        let from = format!("{}/.", dir.display());
        tool("cp", &["-a", &from, place.to_str().unwrap()], Path::new("/"));
    }
    for program in [probe(), probe().with_file_name("gfxpack")] {
        let to = root.join("usr/bin");
        tool("cp", &[program.to_str().unwrap(), to.to_str().unwrap()], Path::new("/"));
    }
}

#[test]
fn doctor_and_lookup_know_an_installed_rocfft_and_its_package() {
    let Some(library) = debian_rocfft() else { return };
    let project = Project::new();
    project.write("plans.txt", "c2c sp ip 64 fwd");
    dist(&project, "plans.txt", "o", &["--target", "gfx90a"]).expect_code(0);
    let root = tempfile::tempdir().unwrap();
    system(&library, root.path());
    let gfxpack = |args: &[&str]| {
        let mut command = crate::support::project::command("unshare");
        let mount = "for dir in proc dev; do mount --rbind /$dir \"$1/$dir\" || exit 9; done";
        let script = format!("{mount}; exec chroot \"$@\"");
        command.args(["--mount", "sh", "-c", &script, "sh"]).arg(root.path());
        command.args(["/usr/bin/gfxpack"]).args(args);
        crate::support::project::finish(command)
    };
    let doctor = |expected: &str, more: &[&str]| {
        let run = gfxpack(&[&["doctor", "--target", "gfx90a"], more].concat());
        let lines: Vec<&str> = run.stdout.lines().filter(|line| line.contains("rocFFT")).collect();
        let all = (&run.stdout, &run.stderr);
        assert!(lines.iter().any(|line| line.contains(expected)), "{expected}: {all:?}");
    };
    doctor("no kernel cache is installed (rocfft-kernels-gfx90a)", &[]);
    let package = project.path().join("o/rocfft-kernels-gfx90a_1.0.32-1_all.deb");
    let args = ["-x", package.to_str().unwrap(), root.path().to_str().unwrap()];
    tool("dpkg-deb", &args, Path::new("/"));
    doctor("kernels for gfx90a and rocFFT 1.", &["--deep"]);
    let miss = gfxpack(&["lookup", "--target", "gfx90a", "fft_none"]).expect_code(3);
    assert!(miss.stderr.contains("gfxpack dist --plans"), "{}", miss.stderr);
    let name = "fft_rtc_fwd_len64_factors_4_4_4_wgs_64_tpt_16_sp_ip_CI_unitstride_sbrr_dirReg";
    let run = gfxpack(&["lookup", "--target", "gfx90a", name]).expect_code(0);
    assert!(run.stdout.contains("has it, "), "{}", run.stdout);

    let file = root.path().join("usr/lib/x86_64-linux-gnu/rocfft/rocfft_kernel_cache.db");
    let whole = fs::read(&file).unwrap();
    sql(&file, "UPDATE cache_v1 SET code = zeroblob(5000)");
    doctor("plans with such kernels fail", &["--deep"]);
    fs::write(&file, &whole).unwrap();
    sql(&file, "UPDATE cache_v1 SET hip_version = 1");
    doctor("has no kernel for gfx90a and rocFFT 1.", &[]);
    fs::write(&file, "nothing").unwrap();
    doctor("can't be read, so every kernel is compiled", &[]);
}
