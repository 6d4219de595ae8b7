//! `gfxpack kdb` and other commands on unusual paths and files: nothing is replaced by mistake, and
//! every loss is reported.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use crate::support::project::{Project, binary, command, finish, tool};
use gfxpack_kdb::{Reader, Row, WriteOptions, write};
use gfxpack_model::KernelKey;

/// A kdb of so many kernels, each of a source of its own.
fn kdb(path: &Path, count: u32) {
    let keys: Vec<KernelKey> = (0..count)
        .map(|n| KernelKey {
            kernel_name: format!("kernel{n:04}.cl.o"),
            kernel_args: " -mcpu=gfx906".to_owned(),
        })
        .collect();
    let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 3000 }).collect();
    // As much of an ELF file for gfx906 as anybody looks at.
    let object = |n: usize| {
        let mut bytes = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
        bytes.resize(64, 0);
        (bytes[18], bytes[48], bytes[49]) = (0xe0, 0x2f, 5);
        bytes.extend(format!("{n} ").repeat(1000).bytes());
        std::io::Result::Ok(bytes)
    };
    write(path, &rows, &WriteOptions::default(), object).unwrap();
}

#[test]
fn devices_are_not_replaced_and_links_are_followed() {
    let project = Project::new();
    let path = |name: &str| project.path().join(name);
    kdb(&path("gfx906_60.kdb"), 3);
    tool("mkfifo", &["pipe"], project.path());
    symlink("/dev/null", path("null")).unwrap();
    symlink("real/out.kdb", path("link.kdb")).unwrap();
    fs::create_dir(path("real")).unwrap();
    let into = |out: &str| project.run(&["kdb", "merge", "gfx906_60.kdb", "-o", out]);
    let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
    let run = into("none/x.kdb").expect_code(2);
    assert!(run.stderr.contains("`none` is no directory"), "{}", run.stderr);
    assert!(!run.stderr.contains(".tmp"), "{}", run.stderr);
    for out in ["/dev/null", "null", "pipe", "real"] {
        let run = into(out).expect_code(2);
        assert!(run.stderr.contains(&format!("failed to write `{out}`")), "{}", run.stderr);
    }
    into("link.kdb").expect_code(0);
    assert!(path("link.kdb").is_symlink() && Reader::open(path("real/out.kdb")).is_ok());
    // Who could not read the old file can't read the new one.
    for rights in [0o600, 0o444] {
        fs::set_permissions(path("real/out.kdb"), Permissions::from_mode(rights)).unwrap();
        into("link.kdb").expect_code(0);
        assert_eq!(mode("real/out.kdb"), rights);
    }
    fs::write(path("gfx906_60.db.txt"), "a=ConvAsm1x1U:1\n").unwrap();
    fs::set_permissions(path("gfx906_60.db.txt"), Permissions::from_mode(0o640)).unwrap();
    let perfdb = |out: &str| project.run(&["perfdb", "merge", "gfx906_60.db.txt", "-o", out]);
    perfdb("gfx906_60.db.txt").expect_code(0);
    assert_eq!(mode("gfx906_60.db.txt"), 0o640);
    perfdb("none/gfx906_60.db.txt").expect_code(2);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(fs::metadata(path("pipe")).unwrap().file_type().is_fifo());

    // Text and bytes go through.
    let get = ["kdb", "get", "gfx906_60.kdb", "kernel0001.cl.o", " -mcpu=gfx906", "-o"];
    project.run(&[&get[..], &["null"]].concat()).expect_code(0);
    project.run(&["harvest", "gfx906_60.kdb", "-o", "/dev/null"]).expect_code(0);
    assert!(path("null").is_symlink());
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    symlink("real/keys.jsonl", path("keys")).unwrap();
    project.run(&["harvest", "gfx906_60.kdb", "-o", "keys"]).expect_code(0);
    assert_eq!(project.text("real/keys.jsonl").lines().count(), 3);
    assert!(path("keys").is_symlink());
}

/// Every command that says a path, on paths that are no text.
#[test]
fn paths_need_not_be_utf8() {
    let project = Project::new();
    let name = |name: &[u8]| OsStr::from_bytes(name).to_owned();
    let (input, out) = (name(b"in\xff.kdb"), name(b"out\xff.kdb"));
    let dir = name(b"dir\xff");
    kdb(&project.path().join(&input), 3);
    let perf = name(b"p\xff/gfx906_60.db.txt");
    fs::create_dir(project.path().join(name(b"p\xff"))).unwrap();
    fs::write(project.path().join(&perf), "a=ConvAsm1x1U:1\n").unwrap();
    let merged = name(b"p\xff/gfx906_60.HIP.fdb.txt");
    let arg = |arg: &str| OsString::from(arg);
    let args = |args: &str| args.split(' ').map(OsString::from).collect::<Vec<_>>();
    let key = [arg("kernel0001.cl.o"), arg(" -mcpu=gfx906")];
    let asked = [args("--target gfx906_60 --system-dir"), vec![dir.clone()], key.to_vec()].concat();
    fs::create_dir(project.path().join(&dir)).unwrap();
    kdb(&project.path().join(&dir).join("gfx906_60.kdb"), 3);
    let perf_out = name(b"p\xff/out.db.txt");
    let cases: Vec<(Vec<OsString>, &[i32])> = vec![
        ([args("kdb verify"), vec![input.clone()]].concat(), &[0]),
        ([args("kdb info"), vec![input.clone()]].concat(), &[0]),
        ([args("kdb diff"), vec![input.clone(), input.clone()]].concat(), &[0]),
        ([args("kdb merge -o"), vec![out, input.clone()]].concat(), &[0]),
        ([args("harvest -o"), vec![name(b"keys\xff"), input]].concat(), &[0]),
        ([args("lookup"), asked].concat(), &[0]),
        ([args("perfdb lint"), vec![perf.clone()]].concat(), &[0]),
        ([args("perfdb merge -o"), vec![perf_out, perf]].concat(), &[0, 2]),
        ([args("perfdb lint"), vec![merged]].concat(), &[1, 2]),
        (args("doctor --env"), &[0]),
        (args("caches list --verbose"), &[0]),
        (args("caches clear --dry-run"), &[0]),
    ];
    // What caches there are lies below a home that is no text either.
    let home = project.path().join(name(b"home\xff"));
    let cache = home.join(".cache/miopen/3.3.0");
    fs::create_dir_all(&cache).unwrap();
    kdb(&cache.join("gfx906_60.ukdb"), 1);
    for (case, codes) in cases {
        for json in [false, true] {
            let mut run = command(binary());
            run.args(&case).current_dir(project.path()).env("HOME", &home);
            if json {
                run.args(["--json", "-"]);
            }
            let run = finish(run);
            let code = run.code.expect("no signal");
            assert!(codes.contains(&code), "{case:?}: {code} {} {}", run.stdout, run.stderr);
            let output = run.stdout + &run.stderr;
            assert!(
                !output.contains("defect") && !output.contains("panicked"),
                "{case:?}: {output}"
            );
        }
    }
}

#[test]
fn more_files_are_merged_than_the_soft_limit_allows() {
    let project = Project::new();
    let files: Vec<String> = (0..90)
        .map(|n| {
            let file = format!("{n}.kdb");
            kdb(&project.path().join(&file), 1 + n);
            file
        })
        .collect();
    let merge = |limit: &str| {
        let script = format!("ulimit {limit} -n 60; exec \"$@\"");
        let mut merge = project.script(&script, &["kdb", "merge", "-o", "out.kdb"]);
        merge.args(&files);
        finish(merge)
    };
    merge("-S").expect_code(0);
    assert_eq!(Reader::open(project.path().join("out.kdb")).unwrap().count().unwrap(), 90);
    let run = merge("-HS").expect_code(2);
    assert!(run.stderr.contains("ulimit -n"), "{}", run.stderr);
}
