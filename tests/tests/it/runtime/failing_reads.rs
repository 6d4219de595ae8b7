//! A disk that fails for a while: a read or lock that fails is a miss, and nothing is taken for
//! damaged.

use std::path::{Path, PathBuf};

use gfxpack_runtime::{Origin, UserDirectory};

use super::support::*;

const KERNELS: usize = 60;

/// Starts a test of this binary with faults to come, and with all kernels
/// stored already.
#[track_caller]
fn run_with_faults(machine: &Machine, test: &str, lock_error: Option<i32>) {
    let library = machine.root.join("failing.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/runtime/c/failing.c");
    let mut compiler = command("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]);
    let compiled = run(compiler.arg("-o").arg(&library).arg(source));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    write_kdb(&machine.kdb(), &[(numbered(999), object(999))]);
    let cache = machine.open();
    (0..KERNELS).for_each(|number| drop(cache.kernel(number)));
    drop(cache);
    let mut child = child(test, &[machine.root.to_str().unwrap()]);
    child.env("LD_PRELOAD", library).env("GFXPACK_TEST_FAULTS", machine.root.join("faults"));
    if let Some(error) = lock_error {
        child.env("GFXPACK_TEST_ERRNO", error.to_string());
    }
    finish(spawn(&mut child));
    let cache = machine.open();
    for number in 0..KERNELS {
        assert_eq!(cache.layer(number), Some("user"), "kernel {number} is not lost");
    }
    assert_eq!(
        listing(&machine.user),
        [".gfxpack-locks", USER_NAME],
        "the file is where it was, and the only one"
    );
    assert_whole(&machine.ukdb());
}

struct Faults {
    control: PathBuf,
    root: PathBuf,
}

impl Faults {
    fn of_child() -> Self {
        let root = PathBuf::from(&child_arguments()[0]);
        Self { control: root.join("faults"), root }
    }

    /// So many in a hundred calls fail from now on.
    fn set(&self, percent: usize) {
        match percent {
            0 => std::fs::remove_file(&self.control).unwrap(),
            _ => std::fs::write(&self.control, vec![b'x'; percent]).unwrap(),
        }
    }

    fn open(&self) -> Cache {
        Cache::open(config(&self.root.join("system"), UserDirectory::Dir(self.root.join("user"))))
    }
}

#[test]
fn reads_that_fail_often_only_cause_recompilation() {
    run_with_faults(
        &Machine::new(0),
        "runtime::failing_reads::child_process_with_many_failing_reads",
        None,
    );
}

#[test]
#[ignore = "the child of another test, started with reads that fail"]
fn child_process_with_many_failing_reads() {
    let faults = Faults::of_child();
    // In a file that is open.
    let cache = faults.open();
    assert_eq!(cache.layer(0), Some("user"));
    faults.set(100);
    let lookup = cache.cache.get(&numbered(1));
    assert!(lookup.found.is_none(), "the read did fail");
    assert_eq!(lookup_reasons(&lookup)[2], "user unreadable");
    faults.set(0);
    assert_eq!(cache.layer(1), Some("user"), "{:?}", cache.warnings.texts());
    faults.set(30);
    let (mut found, mut compiled) = (0, 0);
    for round in 0..10 {
        let cache = faults.open();
        for number in 0..KERNELS {
            match cache.kernel((number * 7 + round) % KERNELS).origin {
                Origin::User(_) => found += 1,
                Origin::Compiled => compiled += 1,
                _ => {}
            }
        }
    }
    assert!(compiled > 100, "reads failed: {compiled}");
    assert!(found > 10, "and some did not: {found}");
    faults.set(0);
}

#[test]
fn locks_that_fail_are_misses() {
    const ENOLCK: i32 = 37;
    const EIO: i32 = 5;
    for error in [ENOLCK, EIO] {
        let machine = Machine::new(0);
        run_with_faults(
            &machine,
            "runtime::failing_reads::child_process_with_failing_locks",
            Some(error),
        );
    }
}

#[test]
#[ignore = "the child of another test, started with locks that fail"]
fn child_process_with_failing_locks() {
    let faults = Faults::of_child();
    let (mut config, warnings) =
        config(&faults.root.join("system"), UserDirectory::Dir(faults.root.join("user")));
    config.limits.busy_wait = std::time::Duration::from_millis(5);
    let cache = Cache::open((config, warnings));
    assert_eq!(cache.layer(0), Some("user"));
    // Reading, storing, and reading what was just stored.
    for percent in [3, 100] {
        faults.set(percent);
        for number in (0..4 * KERNELS).filter(|number| *number != 1) {
            cache.kernel(number);
        }
    }
    let lookup = cache.cache.get(&numbered(1));
    assert!(lookup.found.is_none(), "the locks did fail");
    faults.set(0);
    assert_eq!(faults.open().layer(KERNELS - 1), Some("user"));
}
