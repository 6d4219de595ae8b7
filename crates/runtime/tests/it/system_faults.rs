//! Faults of an installed kdb. In each case there is no error, the kernel is
//! compiled, there is one warning for the file, and the file is left unchanged.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use bzip2::Compression;
use bzip2::write::BzEncoder;
use gfxpack_runtime::WarningClass::{self, *};
use gfxpack_runtime::{NotStored, Origin};
use md5::Digest as _;
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

fn write(bytes: &[u8]) -> impl FnOnce(&Path) {
    move |path| std::fs::write(path, bytes).unwrap()
}

fn changed(statement: &str) -> impl FnOnce(&Path) {
    move |path| sql(path, statement)
}

#[test]
fn an_absent_kdb_is_a_miss_and_one_warning() {
    check(|path| std::fs::remove_file(path).unwrap(), "no-file", MissingSystemKdb);
}

#[test]
fn a_file_smaller_than_any_kdb_is_a_miss() {
    check(write(b""), "unreadable", TooSmall);
    let pointer = b"version https://git-lfs.github.com/spec/v1\nsize 600000000\n";
    let text = check(write(pointer), "unreadable", TooSmall);
    assert!(text.contains("Git LFS"), "{text}");
    check(write(&[b'x'; 511]), "unreadable", TooSmall);
}

#[test]
fn a_file_that_is_not_an_sqlite_database_is_a_miss() {
    check(write(&[7; 512]), "unreadable", Corrupt);
    check(write(&[0; 9000]), "unreadable", Corrupt);
    let header_only = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[100..].fill(0xa5);
        std::fs::write(path, bytes).unwrap();
    };
    check(header_only, "unreadable", Corrupt);
}

#[test]
fn a_kdb_with_another_schema_is_a_miss() {
    let text = check(changed("DROP TABLE kern_db"), "unreadable", WrongSchema);
    assert!(text.contains("kern_db"), "{text}");
    check(changed("ALTER TABLE kern_db RENAME TO perf_db"), "unreadable", WrongSchema);
    let renamed = "ALTER TABLE kern_db RENAME COLUMN kernel_blob TO blob";
    check(changed(renamed), "unreadable", WrongSchema);
}

/// Its rows would be computed by an arbitrary statement.
#[test]
fn a_kdb_with_a_view_is_a_miss() {
    let view = "DROP TABLE kern_db; CREATE VIEW kern_db
        (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) AS
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
        SELECT 'conv.cl.o', ' -DN=' || x, x'00', '', 0 FROM n";
    let text = check(changed(view), "unreadable", WrongSchema);
    assert!(text.contains("CREATE VIEW"), "{text}");
}

fn packed(body: &[u8]) -> Vec<u8> {
    let mut packer = BzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(body).unwrap();
    packer.finish().unwrap()
}

/// The rows look like code objects until fully unpacked, and their hash is
/// wrong.
#[test]
fn bombs_cost_a_bounded_number_of_lookups() {
    let machine = Machine::new(3);
    let mut body = b"\x7fELF".to_vec();
    body.resize(4 + (2 << 20), 0);
    let connection = rusqlite::Connection::open(machine.kdb()).unwrap();
    let bomb = "UPDATE kern_db SET kernel_blob = ?, uncompressed_size = ?";
    connection.execute(bomb, (packed(&body), body.len() as i64)).unwrap();
    connection.close().unwrap();
    let (mut config, warnings) = machine.config();
    config.limits.max_object_bytes = 4 << 20;
    config.look_only = true;
    let file_bytes = std::fs::metadata(machine.kdb()).unwrap().len();
    let unpacked = (config.limits.max_object_bytes + 256 * file_bytes) / (2 << 20) + 1;
    let cache = Cache::open((config, warnings));
    let asked: Vec<String> =
        (0..40).map(|_| lookup_reasons(&cache.cache.get(&numbered(0))).remove(0)).collect();
    assert_eq!(asked.iter().filter(|reason| *reason == "system damaged").count() as u64, unpacked);
    assert_eq!(
        asked.iter().filter(|reason| *reason == "system unreadable").count() as u64,
        40 - unpacked
    );
    assert_eq!(cache.warnings.classes(), [Corrupt], "{:?}", cache.warnings.texts());
}

#[test]
fn a_truncated_kdb_is_a_miss() {
    for cut in [600, 4096, 5000, 8192] {
        let cut_at = |path: &Path| {
            let bytes = std::fs::read(path).unwrap();
            assert!(cut < bytes.len());
            std::fs::write(path, &bytes[..cut]).unwrap();
        };
        check(cut_at, "unreadable", Corrupt);
    }
}

#[test]
fn a_wrong_value_in_any_column_is_a_miss() {
    let row = |assignment: &str, reason: &str, class| {
        check(changed(&format!("UPDATE kern_db SET {assignment}")), reason, class)
    };
    row("kernel_blob = x'00'", "damaged", Corrupt);
    row("kernel_blob = 'text'", "damaged", Corrupt);
    row("kernel_blob = substr(kernel_blob, 1, 90)", "damaged", Corrupt);
    row("kernel_hash = upper(kernel_hash)", "damaged", Corrupt);
    row("kernel_hash = kernel_hash || ' '", "damaged", Corrupt);
    row("kernel_hash = cast(x'ff' AS TEXT)", "damaged", Corrupt);
    row("kernel_hash = lower(hex(zeroblob(16)))", "damaged", Corrupt);
    row("uncompressed_size = 1", "damaged", Corrupt);
    row("uncompressed_size = -1", "damaged", Corrupt);
    row("uncompressed_size = 1 << 50", "damaged", Corrupt);
    row("uncompressed_size = 'many'", "damaged", Corrupt);
    let flip = "kernel_blob = cast(kernel_blob || x'00' AS BLOB)";
    row(flip, "damaged", Corrupt);
}

/// Flips every bit of the hash and the size, and some hundred of the blob.
#[test]
fn a_flipped_bit_in_any_column_is_a_miss() {
    let machine = Machine::new(1);
    let whole = std::fs::read(machine.kdb()).unwrap();
    let row = || {
        let connection = rusqlite::Connection::open(machine.kdb()).unwrap();
        let sql = "SELECT kernel_blob, cast(kernel_hash AS BLOB), uncompressed_size FROM kern_db";
        let row: (Vec<u8>, Vec<u8>, i64) = connection
            .query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap();
        row
    };
    let (blob, hash, size) = row();
    let set = |column: &str, value: &dyn rusqlite::ToSql| {
        std::fs::write(machine.kdb(), &whole).unwrap();
        let connection = rusqlite::Connection::open(machine.kdb()).unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        connection.execute(&format!("UPDATE kern_db SET {column}"), [value]).unwrap();
        connection.close().unwrap();
        let (mut config, warnings) = machine.config();
        config.look_only = true;
        let cache = Cache::open((config, warnings));
        let lookup = cache.cache.get(&numbered(0));
        assert!(lookup.found.is_none(), "{column}");
        assert_eq!(lookup_reasons(&lookup)[0], "system damaged", "{column}");
        assert_eq!(cache.warnings.classes(), [Corrupt], "{:?}", cache.warnings.texts());
    };
    let flipped = |bytes: &[u8], bit: usize| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    for bit in 0..8 * hash.len() {
        set("kernel_hash = cast(?1 AS TEXT)", &flipped(&hash, bit));
    }
    for bit in 0..63 {
        set("uncompressed_size = ?1", &(size ^ 1 << bit));
    }
    for bit in (0..8 * blob.len()).step_by(blob.len() * 8 / 100) {
        set("kernel_blob = ?1", &flipped(&blob, bit));
    }
}

#[test]
fn a_flipped_bit_in_the_key_is_another_key() {
    let machine = Machine::new(1);
    sql(&machine.kdb(), "UPDATE kern_db SET kernel_args = replace(kernel_args, 'N=0', 'N=p')");
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    assert!(cache.warnings.texts().is_empty(), "it could be anybody's kernel");
}

#[test]
fn a_bz2_bomb_is_a_miss() {
    let body = vec![0; 64 << 20];
    let (blob, hash) = (packed(&body), md5::Md5::digest(&body));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let bomb = |declared: i64| {
        let (blob, hash) = (&blob, &hash);
        move |path: &Path| {
            let connection = rusqlite::Connection::open(path).unwrap();
            let sql = "UPDATE kern_db SET kernel_blob = ?, kernel_hash = ?, uncompressed_size = ?";
            connection.execute(sql, (blob, hash, declared)).unwrap();
            connection.close().unwrap();
        }
    };
    check(bomb(1000), "damaged", Corrupt);
    // The declared size is right, but above the limit.
    let machine = Machine::new(1);
    bomb(64 << 20)(&machine.kdb());
    let (mut config, warnings) = machine.config();
    config.limits.max_object_bytes = 1 << 20;
    let cache = Cache::open((config, warnings));
    assert_eq!(reasons(&cache.kernel(0).misses)[0], "system damaged");
}

#[test]
fn a_kdb_in_wal_mode_is_a_miss() {
    let text = check(to_wal_mode, "unreadable", WalMode);
    assert!(text.contains("journal_mode"), "{text}");
}

#[test]
fn a_directory_or_pipe_in_its_place_is_a_miss() {
    let replace = |make: fn(&Path)| {
        move |path: &Path| {
            std::fs::remove_file(path).unwrap();
            make(path);
        }
    };
    check(replace(|path| std::fs::create_dir(path).unwrap()), "unreadable", Unreadable);
    check(replace(|path| symlink(path, path).unwrap()), "unreadable", Unreadable);
    let machine = Machine::new(0);
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, machine.kdb(), FileType::Fifo, mode, 0).unwrap();
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::Compiled, "a pipe without writer does not block");
    assert_eq!(cache.warnings.classes(), [Unreadable]);
    let dangling = replace(|path| symlink("/nonexistent/x.kdb", path).unwrap());
    check(dangling, "unreadable", Unreadable);
}

#[test]
fn code_for_another_device_is_a_miss() {
    let other = |path: &Path| write_kdb(path, &[(numbered(0), code_object(GFX90A, 1))]);
    let text = check(other, "other-target", WrongTarget);
    assert!(text.contains("gfx90a"), "{text}");
    let text = |path: &Path| write_kdb(path, &[(numbered(0), b"no code object".to_vec())]);
    check(text, "no-code-object", WrongTarget);
}

/// Flips one bit at a time in random pages: the bytes are right, or it is a
/// miss.
#[test]
fn flipped_bits_never_give_other_bytes() {
    const KERNELS: usize = 12;
    let machine = Machine::new(KERNELS);
    let whole = std::fs::read(machine.kdb()).unwrap();
    let mut word = 0x2545_f491_4f6c_dd1d_u64;
    let mut misses = 0;
    for round in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..=(round % 4) {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            let bit = word as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        std::fs::write(machine.kdb(), &bytes).unwrap();
        let (mut config, warnings) = machine.config();
        config.look_only = true;
        let cache = Cache::open((config, warnings));
        for number in 0..KERNELS {
            // `layer` checks the bytes.
            misses += usize::from(cache.layer(number).is_none());
        }
        let texts = cache.warnings.texts();
        assert!(texts.len() <= 2, "once per kind of fault: {texts:?}");
        assert!(texts.iter().all(|text| text.lines().count() == 1), "{texts:?}");
    }
    assert!(misses > 100, "the flips hit something: {misses}");
}

#[test]
fn a_system_fault_and_no_place_for_the_user_still_give_the_kernel() {
    let machine = Machine::new(1);
    std::fs::write(machine.kdb(), b"").unwrap();
    let memory = gfxpack_runtime::UserDirectory::Memory { why: "of the test".to_owned() };
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
    let memory = gfxpack_runtime::UserDirectory::Memory { why: "of the test".to_owned() };
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
