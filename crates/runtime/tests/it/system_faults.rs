//! Faults of an installed kdb. In each case there is no error, the kernel is
//! compiled, there is one warning for the file, and the file is left unchanged.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use bzip2::Compression;
use bzip2::write::BzEncoder;
use gfxpack_runtime::WarningClass::{self, *};
use gfxpack_runtime::{NotStored, Origin};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::*;

/// Damages a kdb of three kernels and requests kernel 0 three times: it is
/// missed for `reason` and compiled, then found in the user's kdb.
#[track_caller]
fn check(damage: impl FnOnce(&Path), reason: &str, class: WarningClass) -> String {
    let machine = Machine::new(3);
    damage(&machine.kdb());
    let before = std::fs::read(machine.kdb()).ok();
    let listed = listing(&machine.system);
    let cache = machine.open();
    let expected = [&format!("system {reason}"), "system no-file", "user no-file"];
    assert_eq!(lookup_reasons(&cache.cache.get(&numbered(0))), expected);
    let kernel = cache.kernel(0);
    assert_eq!(kernel.origin, Origin::Compiled);
    assert_eq!(reasons(&kernel.misses), expected);
    assert!(kernel.not_stored.is_none());
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
    assert_eq!(cache.warnings.classes(), [class], "{:?}", cache.warnings.texts());
    let text = cache.warnings.texts().remove(0);
    if class != MissingSystemKdb {
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("gfxpack: warning: failed to "), "{text}");
        assert!(text.contains(NAME), "the warning names the file: {text}");
        assert!(text.contains("; "), "the warning has a hint: {text}");
    }
    assert!(std::fs::read(machine.kdb()).ok() == before, "the file is unchanged");
    assert_eq!(listing(&machine.system), listed, "no file is created beside it");
    text
}

/// Replaces the file by what `make` makes.
fn replace(path: &Path, make: impl FnOnce(&Path)) {
    std::fs::remove_file(path).unwrap();
    make(path);
}

#[test]
fn a_fault_of_the_file_is_a_miss_and_one_warning() {
    check(|path| replace(path, |_| ()), "no-file", MissingSystemKdb);
    let check = |damage: &dyn Fn(&Path), class, part: &str| {
        let text = check(damage, "unreadable", class);
        assert!(text.contains(part), "{text}");
    };
    let pointer = b"version https://git-lfs.github.com/spec/v1\nsize 600000000\n";
    for (bytes, class, part) in [
        (&b""[..], TooSmall, "it is empty"),
        (&pointer[..], TooSmall, "Git LFS"),
        (&[b'x'; 511], TooSmall, "511 bytes"),
        (&[7; 512], Corrupt, "no SQLite 3 file"),
        (&[0; 9000], Corrupt, "no SQLite 3 file"),
    ] {
        check(&|path| std::fs::write(path, bytes).unwrap(), class, part);
    }
    let changed = |change: &dyn Fn(&mut Vec<u8>), class, part| {
        let damage = |path: &Path| {
            let mut bytes = std::fs::read(path).unwrap();
            change(&mut bytes);
            std::fs::write(path, bytes).unwrap();
        };
        check(&damage, class, part);
    };
    changed(&|bytes| bytes[100..].fill(0xa5), Corrupt, "");
    changed(&|bytes| bytes.truncate(5000), Corrupt, "");
    // Its rows would be computed by an arbitrary statement.
    let view = "DROP TABLE kern_db; CREATE VIEW kern_db
        (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) AS
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
        SELECT 'conv.cl.o', ' -DN=' || x, x'00', '', 0 FROM n";
    for (statement, part) in [
        ("DROP TABLE kern_db", "kern_db"),
        ("ALTER TABLE kern_db RENAME TO perf_db", "kern_db"),
        ("ALTER TABLE kern_db RENAME COLUMN kernel_blob TO blob", "`kernel_blob`"),
        (view, "CREATE VIEW"),
    ] {
        check(&|path| sql(path, statement), WrongSchema, part);
    }
    check(&|path| to_wal_mode(path), WalMode, "journal_mode");
    for make in [
        |path: &Path| std::fs::create_dir(path).unwrap(),
        |path: &Path| symlink(path, path).unwrap(),
        |path: &Path| symlink("/nonexistent/x.kdb", path).unwrap(),
    ] {
        check(&|path| replace(path, make), Unreadable, "");
    }
}

/// Rows that claim more than they hold cost a bounded number of lookups.
#[test]
fn bombs_cost_a_bounded_number_of_lookups() {
    const CLAIM: u64 = 64 << 20;
    let machine = Machine::new(3);
    let mut body = b"\x7fELF".to_vec();
    body.resize(2 << 20, 0);
    let mut packer = BzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&body).unwrap();
    let connection = rusqlite::Connection::open(machine.kdb()).unwrap();
    let bomb = "UPDATE kern_db SET kernel_blob = ?, uncompressed_size = ?";
    connection.execute(bomb, (packer.finish().unwrap(), CLAIM as i64)).unwrap();
    connection.close().unwrap();
    let (mut config, warnings) = machine.config();
    config.look_only = true;
    let limit = (256 << 20) + 256 * std::fs::metadata(machine.kdb()).unwrap().len();
    let unpacked = limit / CLAIM + 1;
    let cache = Cache::open((config, warnings));
    let asked: Vec<String> =
        (0..40).map(|_| lookup_reasons(&cache.cache.get(&numbered(0))).remove(0)).collect();
    let count = |reason| asked.iter().filter(|found| *found == reason).count() as u64;
    assert_eq!(count("system damaged"), unpacked);
    assert_eq!(count("system unreadable"), 40 - unpacked);
    assert_eq!(cache.warnings.classes(), [Corrupt], "{:?}", cache.warnings.texts());
}

#[test]
fn a_damaged_row_is_a_miss() {
    for assignment in [
        "kernel_blob = 'text'",
        "kernel_hash = lower(hex(zeroblob(16)))",
        "uncompressed_size = 1 << 50",
    ] {
        let statement = format!("UPDATE kern_db SET {assignment}");
        check(|path| sql(path, &statement), "damaged", Corrupt);
    }
}

#[test]
fn a_pipe_without_a_writer_does_not_block() {
    let machine = Machine::new(0);
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, machine.kdb(), FileType::Fifo, mode, 0).unwrap();
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    assert_eq!(cache.warnings.classes(), [Unreadable]);
}

#[test]
fn code_for_another_device_is_a_miss() {
    let check = |bytes: Vec<u8>, reason| {
        check(|path| write_kdb(path, &[(numbered(0), bytes)]), reason, WrongTarget)
    };
    let text = check(code_object(GFX90A, 1), "other-target");
    assert!(text.contains("gfx90a"), "{text}");
    let mut xnack = code_object(GFX906, 1);
    // XNACK on: 3 in bits 8 and 9 of the flags. The file's name does not say so.
    xnack[49] = 3;
    check(xnack, "other-target");
    check(b"no code object".to_vec(), "no-code-object");
}

#[test]
fn a_system_fault_and_no_place_for_the_user_still_give_the_kernel() {
    let machine = Machine::new(1);
    std::fs::write(machine.kdb(), b"").unwrap();
    let memory = gfxpack_runtime::UserDirectory::Memory("of the test".to_owned());
    let cache = Cache::open(config(&machine.system, memory));
    let kernel = cache.kernel(0);
    assert!(matches!(kernel.not_stored, Some(NotStored::NoUserCache(_))));
    assert_eq!(cache.kernel(0).origin, Origin::Memory, "it is not compiled again");
}

/// As soon as the program may open files again, the installed kdb is used
/// again.
#[test]
fn too_many_open_files_are_not_a_fault_of_the_kdb() {
    let machine = Machine::new(1);
    let test = "system_faults::child_process_without_files_to_spare";
    finish(spawn(&mut child(test, &[machine.system.to_str().unwrap()])));
}

#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_without_files_to_spare() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let memory = gfxpack_runtime::UserDirectory::Memory("of the test".to_owned());
    let cache = Cache::open(config(Path::new(&child_arguments()[0]), memory));
    let usual = getrlimit(Resource::Nofile);
    let mut none = usual;
    none.current = Some(0);
    setrlimit(Resource::Nofile, none).unwrap();
    let lookup = cache.cache.get(&numbered(0));
    setrlimit(Resource::Nofile, usual).unwrap();
    assert_eq!(lookup_reasons(&lookup)[0], "system unreadable");
    assert!(lookup.misses[0].reason.hint().contains("ulimit"), "{:?}", lookup.misses[0]);
    assert_eq!(cache.layer(0), Some("system"));
    assert_eq!(cache.warnings.classes(), [Unreadable], "{:?}", cache.warnings.texts());
}
