//! Another program has the user's kdb open in WAL mode, as MIOpen does while it
//! looks up and stores. Changes to the shared memory of such files must not
//! affect this process.

use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use gfxpack_runtime::WarningClass::{self, WalMode};
use gfxpack_runtime::{NotStored, Origin, UserDirectory};

use crate::other_program::OtherProgram;
use crate::support::*;

/// Kernels 0 to 9 are in the user's kdb, and no others.
fn machine() -> Machine {
    let machine = Machine::new(0);
    write_kdb(&machine.kdb(), &[(numbered(999), object(999))]);
    let cache = machine.open();
    (0..10).for_each(|number| drop(cache.kernel(number)));
    machine
}

/// Starts another program with the file open in WAL mode.
fn program(machine: &Machine) -> OtherProgram {
    let mut program = OtherProgram::start(&machine.ukdb());
    program.execute("PRAGMA journal_mode = WAL");
    program.execute("SELECT * FROM kern_db");
    assert!(machine.user.join(format!("{USER_NAME}-wal")).exists());
    program
}

/// Makes the program store the row of key `like` under key `number`.
fn store(program: &mut OtherProgram, number: usize, like: usize) {
    let columns = "kernel_blob, kernel_hash, uncompressed_size FROM kern_db";
    let (key, like) = (numbered(number), numbered(like));
    program.execute(&format!(
        "INSERT INTO kern_db (kernel_name, kernel_args, kernel_blob, kernel_hash, \
         uncompressed_size) SELECT kernel_name, '{}', {columns} WHERE kernel_args = '{}'",
        key.kernel_args, like.kernel_args
    ));
}

fn truncate_memory(machine: &Machine) {
    let memory = machine.user.join(format!("{USER_NAME}-shm"));
    File::options().write(true).open(memory).unwrap().set_len(0).unwrap();
}

#[test]
fn truncating_the_shared_memory_kills_no_process() {
    for look_only in ["", "look"] {
        let machine = machine();
        let program = program(&machine);
        let root = machine.root.to_str().unwrap();
        let mut child =
            spawn(&mut child("live_wal::child_process_of_a_shared_file", &[root, look_only]));
        let output = await_line(&mut child, "opened");
        truncate_memory(&machine);
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let printed: Vec<String> = output.lines().map(Result::unwrap).collect();
        let status = child.wait().unwrap();
        assert!(status.success(), "{status}: {printed:?}");
        drop(program);
    }
}

#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_of_a_shared_file() {
    let arguments = child_arguments();
    let root = PathBuf::from(&arguments[0]);
    let (mut config, warnings) =
        config(&root.join("system"), UserDirectory::Dir(root.join("user")));
    config.look_only = arguments[1] == "look";
    config.limits.busy_wait = Duration::from_millis(20);
    let cache = Cache::open((config, warnings));
    assert_eq!(cache.layer(0), Some("user"));
    print_line("opened");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for number in 0..10 {
        assert_eq!(cache.layer(number), Some("user"), "{:?}", cache.warnings.texts());
    }
    if arguments[1] != "look" {
        cache.kernel(10);
        assert_eq!(cache.layer(10), Some("memory"));
    }
}

/// A connection that was idle when the file was put into WAL mode maps nothing.
#[test]
fn a_file_put_into_wal_mode_is_read_through_a_copy() {
    let machine = machine();
    let (mut config, warnings) = machine.config();
    config.limits.busy_wait = Duration::from_millis(20);
    let cache = Cache::open((config, warnings));
    assert_eq!(cache.layer(0), Some("user"));
    let mut program = program(&machine);
    for number in 0..10 {
        assert_eq!(cache.layer(number), Some("user"), "{:?}", cache.warnings.texts());
    }
    assert_eq!(cache.layer(20), None);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let memory = format!("{}-shm", machine.ukdb().display());
    assert!(!maps.contains(&memory), "{maps}");
    // Kernels that it stores are found at once; kernels compiled here are kept.
    store(&mut program, 20, 3);
    let lookup = cache.cache.get(&numbered(20));
    assert!(lookup.found.unwrap().code_object[..] == object(3)[..]);
    let kernel = cache.kernel(21);
    assert_eq!(kernel.origin, Origin::Compiled);
    assert!(matches!(kernel.not_stored, Some(NotStored::Failed(_))), "{:?}", kernel.not_stored);
    assert_eq!(cache.layer(21), Some("memory"));
    assert_eq!(cache.warnings.classes(), [WarningClass::NotStored]);
    program.close();
    // After it has closed the file, kernels are stored there again.
    assert_eq!(cache.layer(3), Some("user"));
    assert_eq!(cache.kernel(22).origin, Origin::Compiled);
    assert_eq!(cache.layer(22), Some("user"));
    assert_eq!(listing(&machine.user), [".gfxpack-locks", USER_NAME]);
    assert_whole(&machine.ukdb());
}

/// A store waits until the other program has closed the file, as MIOpen does
/// after each kernel.
#[test]
fn a_store_waits_until_the_other_program_closes_the_file() {
    let machine = machine();
    let program = program(&machine);
    let (mut config, warnings) = machine.config();
    config.limits.busy_wait = Duration::from_secs(600);
    let cache = Cache::open((config, warnings));
    std::thread::scope(|scope| {
        let stored = scope.spawn(|| cache.kernel(30));
        program.close();
        assert!(stored.join().unwrap().not_stored.is_none());
    });
    assert_eq!(cache.layer(30), Some("user"));
    assert!(cache.warnings.texts().is_empty(), "{:?}", cache.warnings.texts());
}

/// A large file is not copied.
#[test]
fn a_large_file_is_a_miss_while_it_is_in_wal_mode() {
    let machine = machine();
    let program = program(&machine);
    let log = machine.user.join(format!("{USER_NAME}-wal"));
    File::options().write(true).open(log).unwrap().set_len(300 << 20).unwrap();
    let (mut config, warnings) = machine.config();
    config.limits.busy_wait = Duration::from_millis(20);
    let cache = Cache::open((config, warnings));
    let lookup = cache.cache.get(&numbered(0));
    assert_eq!(lookup_reasons(&lookup)[2], "user unreadable");
    assert_eq!(cache.warnings.classes(), [WalMode], "{:?}", cache.warnings.texts());
    assert!(cache.warnings.texts()[0].contains("too many to copy"), "{:?}", cache.warnings.texts());
    program.close();
    assert_eq!(cache.layer(0), Some("user"));
}
