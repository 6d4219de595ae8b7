//! `gfxpack lookup` and `doctor` with small kdbs: intact, damaged, misnamed,
//! missing.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::support::kdb::{GFX906, code_object, write_kdb};
use crate::support::project::{Project, Run, command, finish, tool};
use gfxpack_kdb::{Row, WriteOptions, write};
use gfxpack_model::KernelKey;
use serde_json::Value;

const GFX908: u8 = 0x30;

const NAME: &str = "conv.cl.o";
/// A key of both kdbs, one of the device-wide kdb alone.
const BOTH: &str = " -DN=1 -DC=64 -mcpu=gfx906";
const WIDE: &str = " -DN=2 -DC=64 -mcpu=gfx906";

/// A machine of its own: kdbs in `db`, a home directory in `home`.
struct Machine(Project);

impl Machine {
    fn new() -> Self {
        let project = Project::new();
        for directory in ["db", "home"] {
            fs::create_dir(project.path().join(directory)).unwrap();
        }
        Self(project)
    }

    /// One with `gfx906_60.kdb` and `gfx906.kdb`.
    fn installed() -> Self {
        let machine = Self::new();
        machine.kdb("db/gfx906_60.kdb", GFX906, 1, &[(NAME, BOTH), ("pool.cl.o", BOTH)]);
        machine.kdb("db/gfx906.kdb", GFX906, 2, &[(NAME, BOTH), (NAME, WIDE)]);
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn kdb(&self, path: &str, code: u8, mark: u8, keys: &[(&str, &str)]) -> PathBuf {
        let key = |(name, args): &(&str, &str)| KernelKey {
            kernel_name: (*name).to_owned(),
            kernel_args: (*args).to_owned(),
        };
        let path = self.path(path);
        write_kdb(&path, keys.iter().map(key).collect(), &code_object(code, mark));
        path
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Runs a command here, with nothing set but these variables.
    fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = self.0.command(arguments);
        for (name, _) in std::env::vars_os() {
            let name = name.into_string().unwrap_or_default();
            if ["MIOPEN_", "HSA_", "ROCM_", "XDG_"].iter().any(|start| name.starts_with(start)) {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.path("home")).env_remove("TMPDIR");
        command.envs(variables.iter().copied());
        finish(command)
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, &[])
    }

    fn lookup(&self, name: &str, args: &str) -> Run {
        self.run(&["lookup", "--target", "gfx906@60", "--system-dir", "db", name, args])
    }

    /// What is said of a kernel that no file has.
    fn explain(&self, name: &str, args: &str) -> String {
        let run = self.lookup(name, args).expect_code(3);
        run.stdout + &run.stderr
    }

    /// The messages of `doctor`, as `level about: message`, and its exit code.
    fn doctor(&self, more: &[&str], variables: &[(&str, &str)]) -> (Vec<String>, Option<i32>) {
        let mut arguments = vec!["doctor", "--json", "-"];
        arguments.extend(["--target", "gfx906@60", "--system-dir", "db"]);
        arguments.extend(more);
        let run = self.run_with(&arguments, variables);
        let checks = run.of_type("check").into_iter().map(|check| {
            let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
            let bad = ["problem", "warning"].contains(&text("level").as_str());
            assert_eq!(bad, check["hint"].is_string(), "what is bad says what to do: {check}");
            format!("{} {}: {}", text("level"), text("about"), text("message"))
        });
        (checks.collect(), run.code)
    }

    /// What `doctor` finds wrong or suspicious.
    #[track_caller]
    fn finds(&self, level: &str, about: &str, message: &str) {
        let (checks, code) = self.doctor(&[], &[]);
        let expected = format!("{level} {about}: ");
        let found = checks.iter().any(|line| line.starts_with(&expected) && line.contains(message));
        assert!(found, "no `{expected}…{message}` in {checks:#?}");
        let problem = checks.iter().any(|line| line.starts_with("problem "));
        assert_eq!(code, Some(if problem { 101 } else { 0 }), "{checks:#?}");
        assert!(level != "problem" || problem);
    }
}

#[test]
fn a_lookup_names_the_file_that_has_the_kernel() {
    let machine = Machine::installed();
    let hit = machine.lookup(NAME, BOTH).expect_code(0);
    let file = format!("system {}: 200 B for gfx906", machine.path("db/gfx906_60.kdb").display());
    assert_eq!(hit.stdout, format!("MIOpen:            {file}\ngfxpack's runtime: {file}\n"));
    assert!(hit.stderr.starts_with("MIOpen's answer is by the rules of MIOpen 3."), "{hit:?}");

    let arguments = ["lookup", "--target", "gfx906@60", "--system-dir", "db", "--out", "k.o"];
    machine.run(&[&arguments[..], &[NAME, BOTH]].concat()).expect_code(0);
    assert_eq!(fs::read(machine.path("k.o")).unwrap(), code_object(GFX906, 1));
}

/// MIOpen opens `gfx906.kdb` only where `gfx906_60.kdb` does not exist.
#[test]
fn files_that_miopen_does_not_open_are_not_searched() {
    let machine = Machine::installed();
    let hidden = machine.lookup(NAME, WIDE).expect_code(3);
    let [miopen, runtime] = hidden.stdout.lines().collect::<Vec<_>>()[..] else { panic!() };
    assert!(miopen.starts_with("MIOpen:            compiles it: "), "{miopen}");
    assert!(miopen.contains("gfx906.kdb has it, and is not opened since "), "{miopen}");
    assert!(runtime.contains("db/gfx906.kdb: 200 B"), "{runtime}");
    let expected = "gfx906_60.kdb: failed to find the kernel";
    assert!(hidden.stderr.contains(expected), "{}", hidden.stderr);
    assert!(hidden.stderr.contains("--for runtime"), "{}", hidden.stderr);

    let asked = ["--target", "gfx906@60", "--system-dir", "db", "--json", "-"];
    let run = |more: &[&str], code: i32| {
        let run = machine.run(&[&["lookup"], &asked[..], more, &[NAME, WIDE]].concat());
        let run = run.expect_code(code);
        assert!(run.of_type("nearest").is_empty(), "the runtime finds it");
        run.of_type("lookup").remove(0)
    };
    let lookup = run(&[], 3);
    assert_eq!((&lookup["found"], &lookup["file"]), (&false.into(), &Value::Null));
    assert_eq!(
        (&lookup["miopen"]["outcome"], &lookup["miopen"]["found"]),
        (&"compiles".into(), &false.into())
    );
    assert_eq!(lookup["miopen"]["rules"], "3.3 to 3.4");
    let wide = machine.path("db/gfx906.kdb").display().to_string();
    assert_eq!(
        (&lookup["miopen"]["not_opened"], &lookup["runtime"]["file"]),
        (&wide.clone().into(), &wide.into())
    );
    let lookup = run(&["--for", "runtime"], 0);
    assert_eq!((&lookup["found"], &lookup["miopen"]["found"]), (&true.into(), &false.into()));
    machine.finds("warning", "kdb", "gfx906_60.kdb` exists: it hides 1 of 2 kernels");

    let (checks, _) = machine.doctor(&[], &[]);
    let fine = |line: &String| line.starts_with("ok kdb") && line.contains("gfx906.kdb");
    assert!(!checks.iter().any(fine), "{checks:#?}");

    // It is its existence that counts.
    fs::write(machine.path("db/gfx906_60.kdb"), "").unwrap();
    machine.finds("warning", "kdb", "it hides 2 of 2 kernels");
    machine.lookup(NAME, WIDE).expect_code(3);
    fs::remove_file(machine.path("db/gfx906_60.kdb")).unwrap();
    let open = machine.lookup(NAME, WIDE).expect_code(0).stdout;
    assert_eq!(open.matches("db/gfx906.kdb: 200 B").count(), 2, "{open}");
    fs::write(machine.path("db/gfx906_60.kdb"), [7; 4096]).unwrap();
    let broken = machine.lookup(NAME, WIDE).expect_code(3).stdout;
    assert!(broken.starts_with("MIOpen:            fails: "), "{broken}");
}

#[test]
fn without_miopen_the_users_cache_is_not_known() {
    let machine = Machine::installed();
    let own = env!("CARGO_PKG_VERSION");
    for command in
        [&["doctor", "--env"][..], &["doctor", "--target", "gfx906", "--system-dir", "db"]]
    {
        let run = machine.run_with(command, &[("ROCM_PATH", "/no/rocm")]);
        assert!(!run.stdout.contains(&format!("miopen/{own}")), "{}", run.stdout);
    }
    machine.finds("note", "user cache", "no version of MIOpen has kept kernels");
    let header = "#define MIOPEN_VERSION_MAJOR 3\n#define MIOPEN_VERSION_MINOR 4\n\
                  #define MIOPEN_VERSION_PATCH 1\n";
    machine.0.write("rocm/include/miopen/version.h", header);
    machine.0.write("rocm/lib/libMIOpen.so.1", "");
    let rocm = machine.path("rocm").display().to_string();
    let run = machine.run_with(&["doctor", "--env"], &[("ROCM_PATH", &rocm)]).expect_code(0);
    assert!(run.stdout.contains("/.cache/miopen/3.4.1./*.ukdb"), "{}", run.stdout);
}

#[test]
fn a_miss_has_a_code_of_its_own_and_a_reason_for_each_file() {
    let machine = Machine::installed();
    fs::write(machine.path("db/gfx906_60.kdb"), "version https://git-lfs.example/spec/v1\n")
        .unwrap();
    // Keys are byte-exact: one blank less is another key.
    let miss = machine.lookup(NAME, BOTH.trim_start()).expect_code(3);
    let answers = "MIOpen:            compiles it\ngfxpack's runtime: no file has it\n";
    assert!(miss.stdout.starts_with(answers), "{}", miss.stdout);
    for expected in [
        "gfx906_60.kdb: failed to use the file",
        "gfx906.kdb: failed to find the kernel",
        "error: failed to find `conv.cl.o` with the arguments `-DN=1 -DC=64 -mcpu=gfx906` for gfx906@60\n",
        "gfxpack dist --keys FILE",
    ] {
        assert!(miss.stderr.contains(expected), "`{expected}` is not in:\n{}", miss.stderr);
    }
    let arguments = [
        "lookup",
        "--json",
        "-",
        "--target",
        "gfx906@60",
        "--system-dir",
        "db",
        "--system-dir",
        "other",
        NAME,
        "x",
    ];
    let run = machine.run(&arguments).expect_code(3);
    let lookup = &run.of_type("lookup")[0];
    assert_eq!(lookup["found"], false);
    let reasons: Vec<&Value> = lookup["runtime"]["misses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|miss| &miss["reason"])
        .collect();
    assert_eq!(reasons, ["unreadable", "no-kernel", "no-file", "no-file"]);
    assert_eq!(run.of_type("error")[0]["exit_code"], 3);
    assert!(!machine.path("home/.cache").exists(), "a lookup makes nothing");
}

#[test]
fn the_environment_and_the_users_cache_count() {
    let machine = Machine::installed();
    machine.kdb("cache/gfx906_60.ukdb", GFX906, 3, &[(NAME, BOTH), (NAME, " -DU -mcpu=gfx906")]);
    // As a umask of 002 leaves them. All of these only look.
    machine.mode("cache", 0o775);
    machine.mode("cache/gfx906_60.ukdb", 0o664);
    let (db, cache) = (machine.path("db"), machine.path("cache"));
    let variables = [
        ("MIOPEN_SYSTEM_DB_PATH", db.to_str().unwrap()),
        ("MIOPEN_CUSTOM_CACHE_DIR", cache.to_str().unwrap()),
        ("MIOPEN_DEVICE_ARCH", "gfx906"),
        ("MIOPEN_DEVICE_CU", "60"),
    ];
    let run = |arguments: &[&str]| machine.run_with(arguments, &variables);
    let hit = run(&["lookup", NAME, BOTH]).expect_code(0);
    // MIOpen asks the user's first.
    let both = ["MIOpen:            user ", "gfxpack's runtime: system "];
    assert!(both.iter().all(|expected| hit.stdout.contains(expected)), "{}", hit.stdout);
    assert!(hit.stderr.contains("gfx906@60, this machine's first GPU"), "{}", hit.stderr);
    let user = run(&["lookup", "--user-first", NAME, BOTH]).expect_code(0).stdout;
    assert!(user.contains("runtime: user ") && user.contains("gfx906_60.ukdb"), "{user}");
    let only = run(&["lookup", NAME, " -DU -mcpu=gfx906"]).expect_code(0).stdout;
    assert!(only.contains("runtime: user "), "{only}");

    run(&["lookup", NAME, "-DNONE"]).expect_code(3);
    run(&["doctor"]);
    run(&["doctor", "--env"]).expect_code(0);
    let mode = |path: &str| fs::metadata(machine.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("cache"), mode("cache/gfx906_60.ukdb")), (0o775, 0o664), "nothing is changed");

    let mut disabled = variables.to_vec();
    disabled.push(("MIOPEN_DISABLE_CACHE", "1"));
    let nobody = machine.run_with(&["lookup", NAME, BOTH], &disabled).expect_code(3);
    assert!(nobody.stderr.contains("MIOPEN_DISABLE_CACHE"), "{}", nobody.stderr);
}

#[test]
fn without_a_gpu_a_lookup_asks_for_a_target() {
    let machine = Machine::installed();
    fs::create_dir(machine.path("sys")).unwrap();
    let run = machine.run(&["lookup", "--no-hip", "--sysfs", "sys", NAME, BOTH]).expect_code(2);
    assert!(run.stderr.contains("--target gfx90a@104"), "{}", run.stderr);
    let node = "simd_count 240\nsimd_per_cu 4\ngfx_target_version 90006\n";
    machine.0.write("sys/class/kfd/kfd/topology/nodes/1/properties", node);
    let arguments = ["lookup", "--no-hip", "--sysfs", "sys", "--system-dir", "db", NAME, BOTH];
    machine.run(&arguments).expect_code(0);
}

#[test]
fn the_nearest_keys_are_shown_with_what_differs() {
    let machine = Machine::installed();
    let text = machine.explain(NAME, " -DN=3 -DC=64 -mcpu=gfx906");
    for expected in [
        "gfx906_60.kdb: failed to find the kernel in the file",
        "gfx906.kdb: failed to find the kernel in the file",
        "3 kernels have that name; the nearest:",
        "1 word differs in ",
        "  asked    {-DN=3} -DC=64 -mcpu=gfx906\n  stored   {-DN=1} -DC=64 -mcpu=gfx906\n",
        "  asked    {-DN=3} -DC=64 -mcpu=gfx906\n  stored   {-DN=2} -DC=64 -mcpu=gfx906\n",
    ] {
        assert!(text.contains(expected), "`{expected}` is not in:\n{text}");
    }
    assert_eq!(text.matches("stored").count(), 2, "each key once:\n{text}");

    let blank = machine.explain(NAME, BOTH.trim_start());
    assert!(blank.contains("stored  {} -DN=1 -DC=64 -mcpu=gfx906"), "{blank}");
    let bare = machine.explain(NAME, " -DN=1 -DC=64");
    assert!(bare.contains("do not end in ` -mcpu=<device>`"), "{bare}");
    assert!(bare.contains("-DC=64 {-mcpu=gfx906}"), "{bare}");
    let other = machine.explain(NAME, " -DN=1 -DC=64 -mcpu=gfx908");
    assert!(other.contains("the arguments are for gfx908"), "{other}");
    let name = machine.explain("conv.cl", BOTH);
    assert!(
        name.contains("no kernel is called `conv.cl`; the nearest names are `conv.cl.o`"),
        "{name}"
    );
    assert!(name.contains("does not end in `.o`"), "{name}");
    assert!(name.contains("the name is of no source that gfxpack compiles"), "{name}");
}

#[test]
fn a_long_key_is_printed_once() {
    let machine = Machine::new();
    let long = |last: u32| -> String {
        let options: String =
            (0..44).map(|number| format!(" -DMLO_OPTION_{number}={number}")).collect();
        format!("{options} -DN={last} -mcpu=gfx906")
    };
    let stored = [long(1), long(2), long(3)];
    let keys: Vec<(&str, &str)> = stored.iter().map(|args| (NAME, args.as_str())).collect();
    machine.kdb("db/gfx906_60.kdb", GFX906, 1, &keys);
    let text = machine.lookup(NAME, &long(4)).expect_code(3).stdout;
    assert_eq!(text.matches("-DMLO_OPTION_7=7 ").count(), 0, "the error has it:\n{text}");
    let differs = "  asked   … -DMLO_OPTION_43=43 {-DN=4} -mcpu=gfx906\n  \
                   stored  … -DMLO_OPTION_43=43 {-DN=1} -mcpu=gfx906\n";
    assert!(text.contains(differs), "{text}");
    // Machines get all of it.
    let arguments = ["lookup", "--json", "-", "--target", "gfx906@60"];
    let more = ["--system-dir", "db", NAME, &long(4)];
    let run = machine.run(&[&arguments[..], &more].concat()).expect_code(3);
    assert_eq!(run.of_type("nearest")[0]["kernel_args"], stored[0]);
    assert!(run.of_type("nearest")[0]["asked"].as_str().unwrap().contains("-DMLO_OPTION_7=7 "));
}

#[test]
fn a_key_in_a_file_that_is_not_searched_is_reported() {
    let machine = Machine::installed();
    let args = " -DE=1 -mcpu=gfx906";
    machine.kdb("db/gfx906_64.kdb", GFX906, 1, &[(NAME, args)]);
    machine.kdb("home/.cache/miopen/0.0.1/gfx906_60.ukdb", GFX906, 1, &[(NAME, args)]);
    machine.kdb("home/.cache/miopen/3.4.0./gfx906_60.ukdb", GFX906, 1, &[(NAME, BOTH)]);
    machine.kdb("db/gfx908_60.kdb", GFX908, 1, &[(NAME, args)]);
    let text = machine.explain(NAME, args);
    for file in ["db/gfx906_64.kdb", "0.0.1/gfx906_60.ukdb"] {
        assert!(text.contains(&format!("{file} has this very key")), "{text}");
    }
    assert!(!text.contains("gfx908_60.kdb has"), "another processor's code is of no use:\n{text}");

    let arguments = ["lookup", "--json", "-", "--target", "gfx906@60"];
    let more = ["--system-dir", "db", NAME, args];
    let run = machine.run(&[&arguments[..], &more].concat()).expect_code(3);
    assert_eq!(run.of_type("nearest").len(), 2);
    assert_eq!(run.of_type("elsewhere").len(), 2);
}

#[test]
fn the_newest_versions_user_cache_is_searched_unless_another_is_given() {
    let machine = Machine::installed();
    let args = " -DE=1 -mcpu=gfx906";
    for (version, mark) in [("3.9.0.", 3), ("3.10.0.", 4)] {
        let ukdb = format!("home/.cache/miopen/{version}/gfx906_60.ukdb");
        machine.kdb(&ukdb, GFX906, mark, &[(NAME, args)]);
        machine.mode(&format!("home/.cache/miopen/{version}"), 0o700);
    }
    fs::create_dir(machine.path("home/.cache/miopen/4.0.0.")).unwrap();
    let newest = machine.lookup(NAME, args).expect_code(0);
    assert!(newest.stdout.contains("user ") && newest.stdout.contains("/3.10.0./"), "{newest:?}");
    let expected = "note: the user's kernels are those of version 3.10.0., the newest of 2";
    assert!(newest.stderr.contains(expected), "{}", newest.stderr);
    // As people call it.
    let with = |command: &str, more: &[&str]| {
        let arguments = [&[command, "--miopen-version", "3.9.0"], more].concat();
        machine.run(&arguments).expect_code(0).stdout
    };
    let asked = ["--target", "gfx906@60", "--system-dir", "db"];
    let named = with("lookup", &[&asked[..], &[NAME, args]].concat());
    assert!(named.contains("/3.9.0./gfx906_60.ukdb"), "{named}");
    assert!(with("doctor", &asked).contains("/3.9.0.`: "));
    assert!(with("doctor", &["--env"]).contains("/3.9.0./*.ukdb"));
}

#[test]
fn a_custom_cache_has_versions_since_3_5() {
    let machine = Machine::installed();
    let args = " -DE=1 -mcpu=gfx906";
    machine.kdb("own/gfx906_60.ukdb", GFX906, 3, &[(NAME, BOTH)]);
    machine.kdb("own/3.5.1.5b2d/gfx906_60.ukdb", GFX906, 4, &[(NAME, args)]);
    for directory in ["own", "own/3.5.1.5b2d"] {
        machine.mode(directory, 0o700);
    }
    let own = machine.path("own");
    let custom = [("MIOPEN_CUSTOM_CACHE_DIR", own.to_str().unwrap()), ("ROCM_PATH", "/no/rocm")];
    let lookup = |version: &str| {
        let arguments = [
            "lookup",
            "--json",
            "-",
            "--miopen-version",
            version,
            "--target",
            "gfx906@60",
            "--system-dir",
            "db",
            NAME,
            args,
        ];
        machine.run_with(&arguments, &custom).of_type("lookup").remove(0)["miopen"].clone()
    };
    let newer = lookup("3.5.1.5b2d");
    assert_eq!((&newer["found"], &newer["rules"]), (&true.into(), &"3.5".into()));
    let older = lookup("3.4.0");
    assert_eq!((&older["found"], &older["rules"]), (&false.into(), &"3.3 to 3.4".into()));
    let env = |version: &str| {
        let arguments = ["doctor", "--env", "--miopen-version", version];
        machine.run_with(&arguments, &custom).expect_code(0).stdout
    };
    assert!(env("3.5.1.5b2d").contains("/own/3.5.1.5b2d/*.ukdb"));
    assert!(env("3.4.0").contains("/own/*.ukdb"));
    let find_mode = |version: &str| {
        let arguments = ["doctor", "--env", "--json", "-", "--miopen-version", version];
        let run = machine.run_with(&arguments, &[("MIOPEN_FIND_MODE", "6")]).expect_code(0);
        let variables = run.of_type("variable");
        let found = variables.iter().find(|one| one["name"] == "MIOPEN_FIND_MODE").unwrap();
        found["effect"].as_str().unwrap().contains("no such find mode")
    };
    assert!(find_mode("3.4.0") && !find_mode("3.5.1"));
}

#[test]
fn a_correct_machine_has_no_problems() {
    let machine = Machine::installed();
    let all = [(NAME, BOTH), (NAME, WIDE), ("pool.cl.o", BOTH)];
    machine.kdb("db/gfx906_60.kdb", GFX906, 1, &all);
    for more in [&[][..], &["--deep"]] {
        let (checks, code) = machine.doctor(more, &[]);
        assert_eq!(code, Some(0), "{checks:#?}");
        assert!(checks.iter().all(|line| line.starts_with("ok ") || line.starts_with("note ")));
        assert!(
            checks.iter().any(|line| line.contains("gfx906_60.kdb`: 3 kernels")),
            "{checks:#?}"
        );
    }
    assert!(!machine.path("home/.cache").exists(), "looking makes nothing");
    let human = machine.run(&["doctor", "--target", "gfx906@60", "--system-dir", "db"]);
    let human = human.expect_code(0).stdout;
    assert!(human.contains("ok       kdb         `"), "{human}");
    assert!(human.contains("note     user cache  no cache yet"), "{human}");
}

#[test]
fn kdbs_that_are_missing_name_the_package() {
    let machine = Machine::new();
    machine.finds(
        "problem",
        "kdb",
        "none is installed for gfx906@60 (gfx906_60.kdb or gfx906.kdb)",
    );
    machine.kdb("db/gfx906_64.kdb", GFX906, 1, &[(NAME, BOTH)]);
    machine.finds("problem", "kdb", "gfx906_64.kdb` is for other devices of its kind");
    machine.finds("note", "kdb", "of other GPUs: gfx906_64.kdb");
    let human = machine.run(&["doctor", "--target", "gfx906@60", "--system-dir", "db"]);
    let human = human.expect_code(101);
    let hint = "hint: install the package miopen-hip-gfx906-60kdb or miopen-hip-gfx906kdb";
    assert!(human.stdout.contains(hint), "{}", human.stdout);
    let install = ["install", "--from", "db", "--with", "apt", "--dry-run"];
    for command in [&["doctor"][..], &["lookup", NAME, BOTH], &install] {
        let run = machine.run(&[command, &["--target", "gfx906@120"]].concat());
        let said = run.stdout + &run.stderr;
        assert!(said.contains("no gfx906 with 120 compute units is known"), "{said}");
    }
    fs::remove_dir_all(machine.path("db")).unwrap();
    machine.finds("problem", "directory", "no directory of installed kdbs is there");
}

#[test]
fn faults_of_a_kdb_and_of_its_place_are_found() {
    type Damage = fn(&Machine);
    let faults: [(&str, &str, Damage); 5] = [
        ("problem", "it is a Git LFS pointer", |m| {
            fs::write(m.path("db/gfx906.kdb"), "version https://git-lfs.example/spec/v1\n")
                .unwrap();
        }),
        ("problem", "it is no regular file", |m| {
            fs::remove_file(m.path("db/gfx906.kdb")).unwrap();
            fs::create_dir(m.path("db/gfx906.kdb")).unwrap();
        }),
        ("problem", "holds kernels of other GPUs: 1 for gfx908", |m| {
            m.kdb("db/gfx906.kdb", GFX908, 1, &[(NAME, " -DN=1 -mcpu=gfx908")]);
        }),
        ("problem", "holds code for gfx908, not for gfx906", |m| {
            m.kdb("db/gfx906.kdb", GFX908, 1, &[(NAME, BOTH)]);
        }),
        ("problem", "may be written to by every user", |m| m.mode("db/gfx906.kdb", 0o666)),
    ];
    for (level, message, damage) in faults {
        let machine = Machine::installed();
        damage(&machine);
        machine.finds(level, "kdb", message);
    }
    let machine = Machine::installed();
    machine.mode("db/gfx906.kdb", 0o600);
    machine.finds("warning", "kdb", "may not be read by every user");
    machine.0.write("db/gfx906_60.kdb-wal", "");
    machine.finds("warning", "kdb", "gfx906_60.kdb-wal` exists");
    machine.0.write("db/mykernels.kdb", "");
    machine.finds("warning", "kdb", "is named after no GPU");
    machine.0.write("db/gfx908_60.kdb", "");
    machine.finds("warning", "kdb", "0 bytes are less than 512");
}

#[test]
fn deep_finds_more_problems() {
    let machine = Machine::installed();
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
        c.execute('update kern_db set kernel_hash = upper(kernel_hash) where id = 2'); c.commit()";
    tool("python3", &["-c", script, "db/gfx906.kdb"], machine.0.path());
    assert_eq!(machine.doctor(&[], &[]).1, Some(0));
    let (checks, code) = machine.doctor(&["--deep"], &[]);
    assert_eq!(code, Some(101));
    let found =
        checks.iter().any(|line| line.starts_with("problem kdb: ") && line.contains("finding"));
    assert!(found, "{checks:#?}");
}

#[test]
fn wrong_directories_and_variables_are_found() {
    let machine = Machine::installed();
    machine.mode("db", 0o777);
    machine.finds("problem", "directory", "may be written to by every user");
    machine.mode("db", 0o755);

    let with = |name: &str, value: &str| machine.doctor(&[], &[(name, value)]);
    let (checks, code) = with("MIOPEN_LOG_LEVEL", "loud");
    assert_eq!(code, Some(101));
    let expected = "problem environment: MIOPEN_LOG_LEVEL=`loud`: not understood";
    assert!(checks.iter().any(|line| line.starts_with(expected)), "{checks:#?}");
    let (checks, code) = with("MIOPEN_LOG_LEVEL", "3");
    assert_eq!(code, Some(0));
    let expected = "note environment: MIOPEN_LOG_LEVEL=`3`: warnings are hidden";
    assert!(checks.contains(&expected.to_owned()), "{checks:#?}");
    let (checks, code) = with("MIOPEN_DISABLE_CACHE", "yes");
    assert_eq!(code, Some(0));
    let expected = "warning environment: MIOPEN_DISABLE_CACHE=`yes`";
    assert!(checks.iter().any(|line| line.starts_with(expected)), "{checks:#?}");
    assert!(!checks.iter().any(|line| line.contains("kdb: ")), "nothing is asked: {checks:#?}");
}

#[test]
fn leftover_tuning_variables_are_warned_of() {
    let machine = Machine::installed();
    let warned = |name: &str, value: &str| {
        let (checks, code) = machine.doctor(&[], &[(name, value)]);
        assert_eq!(code, Some(0), "a warning is no problem");
        checks.iter().any(|line| line.starts_with(&format!("warning tuning: {name}=`{value}`")))
    };
    assert!(warned("MIOPEN_FIND_ENFORCE", "4"));
    assert!(!warned("MIOPEN_FIND_ENFORCE", "1"));
    let user_db = machine.path("home/.config/miopen");
    assert!(warned("MIOPEN_SYSTEM_DB_PATH", user_db.to_str().unwrap()));
    assert!(!warned("MIOPEN_SYSTEM_DB_PATH", machine.path("db").to_str().unwrap()));
}

#[test]
fn the_users_cache_is_checked() {
    let machine = Machine::installed();
    machine.finds("note", "user cache", "no cache yet");
    let version = env!("CARGO_PKG_VERSION");
    let cache = format!("home/.cache/miopen/{version}");
    machine.kdb(&format!("{cache}/gfx906_60.ukdb"), GFX906, 1, &[(NAME, BOTH)]);
    machine.kdb("home/.cache/miopen/0.0.1/gfx906_60.ukdb", GFX906, 1, &[(NAME, BOTH)]);
    machine.mode(&cache, 0o775);
    machine.finds("warning", "user cache", "(mode 775)");
    // As MIOpen makes it.
    machine.mode(&cache, 0o755);
    let (checks, _) = machine.doctor(&[], &[]);
    assert!(!checks.iter().any(|line| line.starts_with("warning user cache")), "{checks:?}");
    machine.finds("ok", "user cache", "files: 1; kernels: 1");
    machine.finds("note", "user cache", "0.0.1` is of another version");
    fs::write(machine.path(&format!("{cache}/gfx906_60.ukdb")), [7; 4096]).unwrap();
    machine.finds("problem", "user cache", "it is no SQLite 3 file");
}

/// A kernel compiled by one of this machine's compilers, and that compiler's
/// version.
fn compiled(machine: &Machine) -> (Vec<u8>, &'static str) {
    fs::write(machine.path("one.cl"), "__kernel void one(__global int *x) { *x = 1; }").unwrap();
    for version in ["15", "19"] {
        let mut clang = command(format!("clang-{version}"));
        clang.args(["-x", "cl", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib"]);
        clang.arg("-o").arg(machine.path("one.co")).arg(machine.path("one.cl"));
        if clang.output().is_ok_and(|output| output.status.success()) {
            return (fs::read(machine.path("one.co")).unwrap(), version);
        }
    }
    panic!("clang-15 or clang-19 is needed: `cargo xtask test --setup` installs it");
}

#[test]
fn kernels_of_another_compiler_are_reported() {
    let machine = Machine::installed();
    let (own, version) = compiled(&machine);
    let before = format!("clang version {version}");
    let at = own.windows(before.len()).position(|bytes| bytes == before.as_bytes()).unwrap();
    let mut other = own.clone();
    other[at + before.len() - 2..at + before.len()].copy_from_slice(b"11");
    let keys = [(NAME, BOTH), (NAME, WIDE)].map(|(name, args)| KernelKey {
        kernel_name: name.to_owned(),
        kernel_args: args.to_owned(),
    });
    let rows = keys.each_ref().map(|key| Row { key, size: own.len() as u64 });
    let directory = machine.path("home/.cache/miopen/3.4.0.");
    fs::create_dir_all(&directory).unwrap();
    machine.mode("home/.cache/miopen/3.4.0.", 0o700);
    let object = |at| io::Result::Ok(if at == 0 { own.clone() } else { other.clone() });
    write(&directory.join("gfx906_60.ukdb"), &rows, &WriteOptions::default(), object).unwrap();

    let (checks, code) = machine.doctor(&[], &[]);
    assert_eq!(code, Some(0), "{checks:#?}");
    let notes: Vec<&String> = checks.iter().filter(|line| line.contains("made by")).collect();
    assert_eq!(notes.len(), 1, "the other kernel's compiler is installed: {checks:#?}");
    assert!(notes[0].starts_with("note user cache: 1 kernel made by `"), "{notes:?}");
    assert!(notes[0].contains("clang version 11"), "{notes:?}");
}

#[test]
fn doctor_reports_a_missing_gpu() {
    let machine = Machine::installed();
    fs::create_dir(machine.path("sys")).unwrap();
    let install = ["install", "--no-hip", "--sysfs", "sys", "--from", "db", "--dry-run"];
    let none = machine.run(&install).expect_code(3).stderr;
    assert!(none.contains("failed to find an AMD GPU"), "{none}");
    assert!(
        none.contains("hint: `gfxpack doctor` tells why") && !none.contains("--from"),
        "{none}"
    );
    let arguments = ["doctor", "--system-dir", "db", "--no-hip", "--sysfs", "sys"];
    let none = machine.run(&arguments).expect_code(101);
    assert!(none.stdout.contains("problem  device      no AMD GPU was found"), "{}", none.stdout);
    let node = "simd_count 240\nsimd_per_cu 4\ngfx_target_version 90006\n";
    machine.0.write("sys/class/kfd/kfd/topology/nodes/1/properties", node);
    let some = machine.run(&arguments).expect_code(0).stdout;
    assert!(some.contains("ok       device      gfx906@60 "), "{some}");
    fs::remove_dir_all(machine.path("sys/class")).unwrap();
    for (name, text) in [("vendor", "0x1002"), ("device", "0x66af"), ("class", "0x030000")] {
        machine.0.write(&format!("sys/bus/pci/devices/0000:03:00.0/{name}"), text);
    }
    let bus = machine.run(&arguments).expect_code(101).stdout;
    assert!(bus.contains("problem  device      the GPU can't be used to compute"), "{bus}");
}

#[test]
fn all_databases_are_listed_with_path_and_content() {
    let machine = Machine::installed();
    machine.0.write("db/gfx906_60.db.txt", "k=ConvAsm1x1U:1\n");
    let user = "home/.config/miopen/gfx906_60.HIP.3_3_0_.ufdb.txt";
    machine.0.write(user, "k=ConvAsm1x1U:1,0,miopenConvolutionFwdAlgoDirect\nnothing\n");
    let db = machine.path("db").display().to_string();
    let variables = [("MIOPEN_SYSTEM_DB_PATH", db.as_str())];
    let run = machine.run_with(&["doctor", "--env", "--json", "-"], &variables).expect_code(0);
    let files: Vec<String> = run
        .of_type("database-place")
        .iter()
        .flat_map(|place| place["files"].as_array().cloned().unwrap_or_default())
        .map(|file| file.as_str().unwrap_or_default().to_owned())
        .collect();
    let expected = ["db/gfx906.kdb", "db/gfx906_60.kdb", "db/gfx906_60.db.txt", user];
    assert_eq!(files, expected.map(|path| machine.path(path).display().to_string()));
    machine.finds("ok", "tuning", "gfx906_60.db.txt`, 1 record");
    machine.finds("warning", "tuning", "line 2: it has no key");
    fs::remove_file(machine.path("db/gfx906_60.db.txt")).unwrap();
    machine.finds("note", "tuning", "no performance database for gfx906@60");
}

#[test]
fn a_kernel_of_miopen_is_not_looked_up_without_its_arguments() {
    let project = Project::new();
    let run = project.run(&["lookup", "MIOpenSoftmax.cl.o", "--target", "gfx906"]).expect_code(2);
    assert!(run.stderr.contains("its arguments are missing"), "{}", run.stderr);
}
