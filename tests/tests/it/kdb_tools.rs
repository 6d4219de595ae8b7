//! `gfxpack kdb` on a kdb of real kernels: merges, compares and verifies it.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::support::project::{Project, finish, tool};
use crate::support::terminal::on_a_terminal;

/// A project with the kdb [`PLAIN`], compiled once for all tests.
fn built() -> Arc<Project> {
    // The last test that holds it removes it.
    static BUILT: Mutex<Weak<Project>> = Mutex::new(Weak::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.upgrade().unwrap_or_else(|| {
        let project = Arc::new(Project::small());
        let args = ["build", "--manifest", "kernels.toml", "--target", "gfx906_60"];
        project.run(&[&args[..], &["--out", "plain"]].concat()).expect_code(0);
        *built = Arc::downgrade(&project);
        project
    })
}

const PLAIN: &str = "plain/kdb/gfx906_60.kdb";

/// A directory of the test's own in the project.
fn scratch(project: &Project, name: &str) -> String {
    fs::create_dir(project.path().join(name)).unwrap();
    name.to_owned()
}

#[test]
fn a_listed_key_is_what_other_commands_take() {
    let project = &*built();
    let get = r#"eval "set -- '$1' '$2' $("$1" kdb list "$2" | head -n 1)"
                 program=$1 kdb=$2; shift 2; exec "$program" kdb get "$kdb" "$@""#;
    assert!(finish(project.script(get, &[PLAIN])).expect_code(0).stdout.contains("ELF"));
}

#[test]
fn parts_are_merged_and_differences_are_listed() {
    let project = &*built();
    let out = scratch(project, "parts");
    let bytes = |path: &str| fs::read(project.path().join(path)).unwrap();
    let changed = |name: &str, sql: &str| {
        let kdb = format!("{out}/{name}.kdb");
        fs::copy(project.path().join(PLAIN), project.path().join(&kdb)).unwrap();
        tool("sqlite3", &[&kdb, sql], project.path());
        kdb
    };
    let few = changed("few", "DELETE FROM kern_db WHERE id > 2");
    let rest = changed("rest", "DELETE FROM kern_db WHERE id < 2");
    let merged = format!("{out}/merged.kdb");
    project.run(&["kdb", "merge", "-o", &merged, &rest, &few]).expect_code(0);
    assert!(bytes(&merged) == bytes(PLAIN));
    project.run(&["kdb", "merge", PLAIN, "-o", &merged, "--blob", "bz2"]).expect_code(0);
    project.run(&["kdb", "diff", PLAIN, &merged, "--exit-code"]).expect_code(0);

    let args = ["kdb", "diff", &few, PLAIN, "--exit-code", "--json", "-"];
    let run = project.run(&args).expect_code(101);
    let summary = &run.of_type("diff")[0];
    assert_eq!((&summary["added"], &summary["same"]), (&3.into(), &2.into()));
    let changes = run.of_type("difference");
    assert!(changes.iter().all(|change| change["change"] == "added" && change["old"].is_null()));
    let run = project.run(&["kdb", "diff", PLAIN, &few]).expect_code(0);
    let removed = run.stdout.lines().filter(|line| line.starts_with("- "));
    assert_eq!(removed.count(), 3, "{}", run.stdout);

    // Another build of one kernel: refused unless a policy says which.
    let other = changed(
        "other",
        "UPDATE kern_db SET (kernel_blob, kernel_hash, uncompressed_size) = \
         (SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE id = 1) WHERE id = 2",
    );
    let run = project.run(&["kdb", "merge", PLAIN, &other, "-o", &merged]).expect_code(2);
    assert!(run.stderr.contains("--on-conflict"), "{}", run.stderr);
    let args = ["kdb", "merge", PLAIN, &other, "-o", &merged, "--on-conflict", "first"];
    project.run(&args).expect_code(0);
    assert!(bytes(&merged) == bytes(PLAIN));
}

/// A damaged kdb is named as damaged, and the hint says to make it anew.
#[test]
fn a_damaged_file_is_named_with_a_hint() {
    let project = &*built();
    let damaged = format!("{}/gfx906_60.kdb", scratch(project, "damaged"));
    let mut bytes = fs::read(project.path().join(PLAIN)).unwrap();
    bytes[4096..8192].fill(0xff);
    fs::write(project.path().join(&damaged), &bytes).unwrap();
    let merge = ["kdb", "merge", &damaged, "-o", "out.kdb"];
    for (args, code) in [(&["kdb", "list", &damaged][..], 2), (&merge, 2)] {
        let run = project.run(args).expect_code(code);
        assert!(run.stderr.contains(&damaged), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains("hint: build the file or install"), "{}", run.stderr);
    }
    let run = project.run(&["kdb", "verify", &damaged]).expect_code(101);
    assert!(run.stderr.contains("build the file again, or install"), "{}", run.stderr);
}

#[test]
fn verify_has_a_hint_for_its_findings() {
    let project = &*built();
    let out = scratch(project, "hints");
    let change = |name: &str, how: &str| {
        let kdb = format!("{out}/{name}.kdb");
        fs::copy(project.path().join(PLAIN), project.path().join(&kdb)).unwrap();
        let how = format!("import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); {how}");
        tool("python3", &["-c", &how, &kdb], project.path());
        project.run(&["kdb", "verify", &kdb, "--target", "gfx906_60"]).expect_code(101)
    };
    let wal = change("wal", "db.execute('PRAGMA journal_mode = wal'); db.close()");
    assert!(wal.stderr.contains("pragma journal_mode=delete"), "{}", wal.stderr);
    // Killed before it was done.
    let hot = change(
        "hot",
        "db.execute('PRAGMA cache_size = 1'); db.execute('PRAGMA cache_spill = 1'); \
         db.execute('BEGIN'); db.execute('UPDATE kern_db SET kernel_blob = kernel_blob || 1'); \
         os._exit(0)",
    );
    assert!(hot.stdout.contains("journal: "), "{}", hot.stdout);
    assert!(hot.stderr.contains("close the program that writes"), "{}", hot.stderr);
    for run in [wal, hot] {
        assert!(!run.stderr.contains("build the file again"), "{}", run.stderr);
    }
    let hash = change("hash", "db.execute('UPDATE kern_db SET kernel_hash = 1'); db.commit()");
    assert!(hash.stderr.contains("build the file again"), "{}", hash.stderr);
}

/// On a terminal every command that takes long shows how far it is, and
/// leaves nothing of that behind; elsewhere it says only what it did.
#[test]
fn long_commands_show_progress() {
    let project = &*built();
    let out = scratch(project, "bars");
    let (kdb, log) = (format!("{out}/a.kdb"), format!("{out}/app.log"));
    fs::write(
        project.path().join(&log),
        "MIOpen(HIP): Info2 [LoadBinary] Loading binary for: \"a.cl.o\"; args:  -mcpu=gfx906\n",
    )
    .unwrap();
    for (args, what) in [
        (&["kdb", "merge", PLAIN, PLAIN, "-o", &kdb][..], "merging"),
        (&["kdb", "verify", PLAIN], "verifying"),
        (&["harvest", &log], "reading"),
    ] {
        let run = finish(on_a_terminal(&project.command(args), 100)).expect_code(0);
        assert!(run.stdout.contains(what), "{args:?}: {}", run.stdout);
        assert!(run.stdout.contains("\u{1b}["), "{args:?} clears its bar");
        let plain = project.run(args).expect_code(0);
        let output = plain.stdout + &plain.stderr;
        assert!(!output.contains('\u{1b}') && !output.contains(&format!("{what}:")), "{output}");
    }
}
