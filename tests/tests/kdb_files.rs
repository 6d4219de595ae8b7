//! `gfxpack kdb` and other commands on unusual paths and files: nothing is replaced by mistake, and
//! every loss is reported.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use gfxpack_kdb::{Reader, Row, WriteOptions, write};
use gfxpack_model::KernelKey;
use gfxpack_tests::project::{Project, binary, command, finish, tool};

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
fn rows_that_a_repair_lost_are_reported() {
    let project = Project::new();
    let path = project.path().join("gfx906_60.kdb");
    kdb(&path, 60);
    let whole = fs::read(&path).unwrap();
    let repair = ["kdb", "repair", "gfx906_60.kdb", "-o", "out.kdb"];
    project.run(&repair).expect_code(0);
    fs::write(&path, &whole[..whole.len() / 8192 * 4096]).unwrap();
    let run = project.run(&repair).expect_code(101);
    for expected in ["is cut short: ", " cut off", "hint: copy the file again"] {
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
    assert!(!run.stderr.contains(" of 60"), "nobody knows how many: {}", run.stderr);

    // The last row is in the log alone.
    fs::write(&path, &whole).unwrap();
    let python = "import os, sqlite3\n\
                  db = sqlite3.connect('gfx906_60.kdb')\n\
                  db.execute('PRAGMA journal_mode = WAL')\n\
                  db.execute(\"INSERT INTO kern_db SELECT NULL, 'new.o', kernel_args, kernel_blob, \
                  kernel_hash, uncompressed_size FROM kern_db LIMIT 1\")\n\
                  db.commit()\n\
                  os._exit(0)";
    tool("python3", &["-c", python], project.path());
    let run = project.run(&repair).expect_code(101);
    assert!(run.stderr.contains("gfx906_60.kdb-wal` has"), "{}", run.stderr);
    assert!(run.stderr.contains("wal_checkpoint"), "{}", run.stderr);
    let log = project.path().join("gfx906_60.kdb-wal");
    fs::write(&log, &fs::read(&log).unwrap()[..32]).unwrap();
    project.run(&repair).expect_code(0);
    fs::remove_file(log).unwrap();

    fs::remove_file(&path).unwrap();
    let sql = "CREATE TABLE other (a, b); INSERT INTO other VALUES (1, 2)";
    tool("sqlite3", &["gfx906_60.kdb", sql], project.path());
    let run = project.run(&repair).expect_code(101);
    assert!(run.stderr.contains("shape of MIOpen's rows"), "{}", run.stderr);
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
    let into =
        |command: &str, out: &str| project.run(&["kdb", command, "gfx906_60.kdb", "-o", out]);
    let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
    for command in ["merge", "convert", "repair"] {
        let run = into(command, "none/x.kdb").expect_code(2);
        assert!(run.stderr.contains("`none` is no directory"), "{}", run.stderr);
        assert!(!run.stderr.contains(".tmp"), "{}", run.stderr);
        for out in ["/dev/null", "null", "pipe", "real"] {
            let run = into(command, out).expect_code(2);
            assert!(run.stderr.contains(&format!("failed to write `{out}`")), "{}", run.stderr);
        }
        into(command, "link.kdb").expect_code(0);
        assert!(path("link.kdb").is_symlink() && Reader::open(path("real/out.kdb")).is_ok());
        // Who could not read the old file can't read the new one.
        for rights in [0o600, 0o444] {
            fs::set_permissions(path("real/out.kdb"), Permissions::from_mode(rights)).unwrap();
            into(command, "link.kdb").expect_code(0);
            assert_eq!(mode("real/out.kdb"), rights, "{command}");
        }
        fs::remove_file(path("real/out.kdb")).unwrap();
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
    let (dir, html) = (name(b"dir\xff"), name(b"page\xff.html"));
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
        ([args("kdb stats"), vec![input.clone(), arg("--html"), html]].concat(), &[0]),
        ([args("kdb diff"), vec![input.clone(), input.clone()]].concat(), &[0]),
        ([args("kdb merge -o"), vec![out.clone(), input.clone()]].concat(), &[0]),
        ([args("kdb convert -o"), vec![out.clone(), input.clone()]].concat(), &[0]),
        ([args("kdb repair -o"), vec![out, input.clone()]].concat(), &[0]),
        (
            [args("kdb split --by kernel -o"), vec![name(b"parts\xff"), input.clone()]].concat(),
            &[0],
        ),
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

/// Stops a split that nobody reads the names from, which holds it up: its pipe
/// takes few of them.
const STOP: &str = r#"
import fcntl, os, signal, subprocess, sys
F_SETPIPE_SZ = 1031
read, write = os.pipe()
fcntl.fcntl(write, F_SETPIPE_SZ, 4096)
run = subprocess.Popen(sys.argv[1:], stdout=write, stderr=subprocess.PIPE)
os.close(write)
os.read(read, 1)
run.send_signal(signal.SIGTERM)
print(run.stderr.readline().decode().strip())
while os.read(read, 4096): pass
print(run.wait(), run.stderr.read().decode())
"#;

#[test]
fn a_signal_leaves_no_files_behind() {
    let project = Project::new();
    kdb(&project.path().join("gfx906_60.kdb"), 200);
    let out = "parts".repeat(40);
    let gfxpack = binary().to_str().unwrap();
    let args = ["-c", STOP, gfxpack, "kdb", "split", "gfx906_60.kdb", "--by", "kernel", "-o", &out];
    let output = tool("python3", &args, project.path());
    assert!(output.contains("stopping") && output.contains("\n130 "), "{output}");
    let parts: Vec<PathBuf> = fs::read_dir(project.path().join(&out))
        .unwrap()
        .map(|part| part.unwrap().path().join("gfx906_60.kdb"))
        .collect();
    assert!((1..200).contains(&parts.len()), "{} parts", parts.len());
    for part in parts {
        assert!(Reader::open(&part).is_ok(), "{}", part.display());
        assert_eq!(fs::read_dir(part.parent().unwrap()).unwrap().count(), 1);
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
    let gfxpack = binary().to_str().unwrap();
    let merge = |limit: &str| {
        let script = format!("ulimit {limit} -n 60; exec \"$@\"");
        let mut run = command("bash");
        run.args(["-c", &script, "bash", gfxpack, "kdb", "merge", "-o", "out.kdb"]).args(&files);
        finish({
            run.current_dir(project.path());
            run
        })
    };
    merge("-S").expect_code(0);
    assert_eq!(Reader::open(project.path().join("out.kdb")).unwrap().count().unwrap(), 90);
    let run = merge("-HS").expect_code(2);
    assert!(run.stderr.contains("ulimit -n"), "{}", run.stderr);
}

/// Every command that reads kdbs, with a limit that no row keeps to.
#[test]
fn objects_beyond_the_size_limit_are_refused() {
    const FILE: &str = "gfx906_60.kdb";
    const KEY: [&str; 2] = ["kernel0001.cl.o", " -mcpu=gfx906"];
    let project = Project::new();
    kdb(&project.path().join(FILE), 3);
    let lookup = ["lookup", "--target", "gfx906_60", "--system-dir", ".", KEY[0], KEY[1]];
    let missing = ["plan", "--keys", "keys", "--source-dir", ".", "-t", "gfx906_60"];
    fs::write(project.path().join("keys"), "").unwrap();
    tool("tar", &["-czf", "kernels.tar.gz", FILE], project.path());
    let cases: &[(&[&str], i32)] = &[
        (&["verify", "kernels.tar.gz"], 101),
        (&["kdb", "verify", FILE], 101),
        (&["kdb", "list", FILE], 2),
        (&["kdb", "stats", FILE], 2),
        (&["kdb", "diff", FILE, FILE], 2),
        (&["kdb", "get", FILE, KEY[0], KEY[1], "-o", "object"], 2),
        (&["kdb", "merge", FILE, "-o", "out.kdb"], 2),
        (&["kdb", "convert", FILE, "-o", "out.kdb"], 2),
        (&["kdb", "split", FILE, "--by", "kernel", "-o", "parts"], 2),
        (&["kdb", "repair", FILE, "-o", "out.kdb"], 101),
        (&["package", FILE, "--out", "packages"], 101),
        (&[&missing[..], &["--missing-from", FILE]].concat(), 2),
        (&lookup, 3),
    ];
    // These read keys alone.
    project.run(&["kdb", "info", FILE, "--max-object", "2kB"]).expect_code(0);
    project.run(&["harvest", FILE, "-o", "keys.jsonl", "--max-object", "2kB"]).expect_code(0);
    for (args, code) in cases {
        let run = project.run(&[*args, &["--max-object", "2kB"]].concat()).expect_code(*code);
        let output = run.stdout + &run.stderr;
        assert!(output.contains("the limit is 2000"), "{args:?}: {output}");
        if !matches!(args[0], "package" | "plan") {
            let run = project.run(args);
            assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
        }
    }
}
