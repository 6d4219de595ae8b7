//! Faults of files and directories, from C: the kernel is compiled, one warning names the reason,
//! and nothing else happens.

use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::*;

const UNREADABLE: u8 = 2;
const MOVED_ASIDE: u8 = 4;
const UNTRUSTED: u8 = 5;
const DAMAGED: u8 = 6;
const NO_CODE_OBJECT: u8 = 7;
const OTHER_TARGET: u8 = 8;

/// `gfxpack_warning_class`.
#[derive(Debug, Clone, Copy)]
enum Class {
    TooSmall = 1,
    Corrupt = 2,
    Unreadable = 3,
    WrongSchema = 4,
    WalMode = 5,
    WrongTarget = 6,
    UserPlace = 8,
    Untrusted = 9,
    NotStored = 10,
}

/// The lines that begin so.
fn lines<'a>(printed: &'a str, begin: &str) -> Vec<&'a str> {
    printed.lines().filter(|line| line.starts_with(begin)).collect()
}

/// Does something to an installed kdb and asks C for kernel 0 of it: a miss for
/// that reason and one warning, compiled, then found in the user's.
#[track_caller]
fn system(damage: impl FnOnce(&Path), reason: u8, class: Class) {
    let machine = Machine::with_kdb();
    damage(&machine.kdb());
    check_system(&machine, &|machine| machine.program("driver.c"), reason, class);
}

/// The same, the damage done, by a driver that is started so.
#[track_caller]
fn check_system(machine: &Machine, driver: &dyn Fn(&Machine) -> Command, reason: u8, class: Class) {
    let (args, object) = (args(0), machine.object_file(0));
    let steps = ["get", NAME, &args, "compile", NAME, &args, &object, "get", NAME, &args];
    let output = run(driver(machine).arg("--callback").args(steps));
    let printed = text(output.stdout);
    assert_eq!(text(output.stderr), "");
    assert_eq!(printed.matches(&nothing("get", 1)).count(), 1, "{printed}");
    assert!(printed.contains(&there("compile", 4, 0, None)), "{printed}");
    assert!(printed.contains(&there("get", 3, 0, Some(&machine.ukdb()))), "{printed}");
    assert_eq!(printed.matches(&miss(2, reason, &machine.kdb())).count(), 3, "{printed}");
    let warnings = lines(&printed, "warning ");
    let expected = format!("warning mine kind={} file={}", class as u8, machine.kdb().display());
    assert_eq!(warnings, [expected], "{printed}");
    assert_eq!(lines(&printed, "gfxpack: warning: failed to ").len(), 1, "{printed}");

    // The same text on standard error.
    let printed_text = lines(&printed, "gfxpack: warning: ")[0].to_owned() + "\n";
    let output = run(driver(machine).args(["get", NAME, &args, "get", NAME, &args]));
    assert_eq!(text(output.stderr), printed_text);
}

fn set(assignment: &str) -> impl FnOnce(&Path) {
    move |path| sql(path, &format!("UPDATE kern_db SET {assignment}"))
}

#[test]
fn an_installed_kdb_that_is_cut_short_or_no_kdb_is_reported_once() {
    system(|path| std::fs::write(path, "").unwrap(), UNREADABLE, Class::TooSmall);
    let pointer = "version https://git-lfs.github.com/spec/v1\nsize 600000000\n";
    system(|path| std::fs::write(path, pointer).unwrap(), UNREADABLE, Class::TooSmall);
    system(|path| std::fs::write(path, [b'x'; 511]).unwrap(), UNREADABLE, Class::TooSmall);
    system(|path| std::fs::write(path, [7; 512]).unwrap(), UNREADABLE, Class::Corrupt);
    system(|path| std::fs::write(path, [7; 5000]).unwrap(), UNREADABLE, Class::Corrupt);
    let truncate = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..5000]).unwrap();
    };
    system(truncate, UNREADABLE, Class::Corrupt);
    let drop_table = |path: &Path| sql(path, "DROP TABLE kern_db");
    system(drop_table, UNREADABLE, Class::WrongSchema);
}

#[test]
fn a_directory_or_circular_link_in_place_of_a_kdb_is_reported_once() {
    let directory = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    system(directory, UNREADABLE, Class::Unreadable);
    let circle = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        symlink(path, path).unwrap();
    };
    system(circle, UNREADABLE, Class::Unreadable);
}

#[test]
fn an_installed_kernel_with_damaged_rows_is_compiled() {
    system(set("kernel_hash = upper(kernel_hash)"), DAMAGED, Class::Corrupt);
    system(set("kernel_hash = lower(hex(zeroblob(16)))"), DAMAGED, Class::Corrupt);
    system(set("kernel_blob = substr(kernel_blob, 1, 40)"), DAMAGED, Class::Corrupt);
    system(set("uncompressed_size = 1 << 50"), DAMAGED, Class::Corrupt);
    let no_code = "kernel_blob = x'00', kernel_hash = '93b885adfe0da089cdf634904fd59f71', \
                   uncompressed_size = 0";
    system(set(no_code), NO_CODE_OBJECT, Class::WrongTarget);
}

/// One bit of each column of a kernel: its bytes are still right, or compiled.
#[test]
fn an_installed_kernel_with_a_flipped_bit_in_any_column_is_compiled_or_right() {
    let flip = |column: &str, at: usize| {
        let script = "import sqlite3, sys
path, column, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = sqlite3.connect(path)
value, kind = db.execute(f'SELECT {column}, typeof({column}) FROM kern_db WHERE id = 1').fetchone()
if kind == 'integer':
    value ^= 1 << at
else:
    raw = bytearray(value if kind == 'blob' else value.encode())
    raw[at % len(raw)] ^= 1
    value = bytes(raw) if kind == 'blob' else raw.decode()
db.execute(f'UPDATE kern_db SET {column} = ? WHERE id = 1', (value,))
db.commit()";
        let (column, at) = (column.to_owned(), at.to_string());
        move |path: &Path| {
            let mut python = command("python3");
            run(python.args(["-c", script]).arg(path).args([column, at]));
        }
    };
    for at in [4, 9, 40, 100] {
        system(flip("kernel_blob", at), DAMAGED, Class::Corrupt);
    }
    for at in [0, 31] {
        system(flip("kernel_hash", at), DAMAGED, Class::Corrupt);
    }
    for at in [0, 7, 40, 62] {
        system(flip("uncompressed_size", at), DAMAGED, Class::Corrupt);
    }
    // In the key it is somebody else's kernel, and nothing is wrong.
    for column in ["kernel_name", "kernel_args"] {
        let machine = Machine::with_kdb();
        flip(column, 3)(&machine.kdb());
        let (args_0, object) = (args(0), machine.object_file(0));
        let mut driver = machine.program("driver.c");
        let output = run(driver.args(["compile", NAME, &args_0, &object, "get", NAME, &args_0]));
        let printed = text(output.stdout);
        assert!(printed.contains(&there("compile", 4, 0, None)), "{printed}");
        assert!(printed.contains(&there("get", 3, 0, Some(&machine.ukdb()))), "{printed}");
        assert_eq!(text(output.stderr), "");
    }
}

/// The bytes with up to four bits flipped anywhere.
fn flipped(whole: &[u8], round: u64) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let mut word = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..=(round % 4) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        let bit = word as usize % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    bytes
}

#[test]
fn flipped_bits_in_pages_of_an_installed_kdb() {
    let machine = Machine::with_kdb();
    let whole = std::fs::read(machine.kdb()).unwrap();
    let steps: Vec<String> = (0..3).flat_map(|n| ["get".into(), NAME.into(), args(n)]).collect();
    let mut missed = 0;
    for round in 0..200 {
        std::fs::write(machine.kdb(), flipped(&whole, round)).unwrap();
        let printed = text(run(machine.program("driver.c").arg("--callback").args(&steps)).stdout);
        let answers = lines(&printed, "get status=");
        assert_eq!(answers.len(), 3, "round {round}: {printed}");
        for (number, answer) in answers.iter().enumerate() {
            let hit = there("get", 2, number, Some(&machine.kdb()));
            missed += usize::from(*answer == nothing("get", 1).trim_end());
            let right = [hit, nothing("get", 1)].iter().any(|line| line.trim_end() == *answer);
            assert!(right, "round {round}: {printed}");
        }
        let warned = lines(&printed, "warning mine ").len();
        assert!(warned <= 2, "once per kind of fault: {printed}");
    }
    assert!(missed > 20, "the flips hit something: {missed}");
}

#[test]
fn flipped_bits_in_pages_of_a_users_kdb() {
    let machine = Machine::new();
    let steps: Vec<String> = (0..3)
        .flat_map(|n| ["compile".into(), NAME.into(), args(n), machine.object_file(n)])
        .collect();
    run(machine.program("driver.c").arg("--silent").args(&steps));
    let whole = std::fs::read(machine.ukdb()).unwrap();
    for round in 0..60 {
        std::fs::write(machine.ukdb(), flipped(&whole, round)).unwrap();
        let mut driver = machine.program("driver.c");
        // A file that turns out damaged at the last kernel has all again after the second turn.
        driver.arg("--silent").args(&steps).args(&steps);
        let printed = text(run(&mut driver).stdout);
        assert!(!printed.contains("not-stored=failed"), "round {round}: {printed}");
        for number in 0..3 {
            let bytes = object(number);
            let right = format!("size={} hash={:016x} ", bytes.len(), hash(&bytes));
            assert_eq!(printed.matches(&right).count(), 2, "round {round}: {printed}");
        }
        let again = text(run(machine.program("driver.c").arg("--silent").args(&steps)).stdout);
        for number in 0..3 {
            let found = there("compile", 3, number, Some(&machine.ukdb()));
            assert!(again.contains(&found), "round {round}: {again}");
        }
    }
}

#[test]
fn an_installed_kernel_that_decompresses_to_far_more_than_stated_is_compiled() {
    let bomb = |path: &Path| {
        let script = "import bz2, hashlib, sqlite3, sys
body = b'\\0' * (64 << 20)
db = sqlite3.connect(sys.argv[1])
db.execute('UPDATE kern_db SET kernel_blob = ?, kernel_hash = ?, uncompressed_size = 1000',
    (bz2.compress(body), hashlib.md5(body).hexdigest()))
db.commit()";
        run(command("python3").args(["-c", script]).arg(path));
    };
    system(bomb, DAMAGED, Class::Corrupt);
}

#[test]
fn an_installed_kernel_for_another_device_is_compiled() {
    let machine = Machine::with_kdb();
    std::fs::rename(machine.kdb(), machine.root.join("system/gfx906_60.kdb.old")).unwrap();
    let mut other = object(0);
    other[48] = 0x3f;
    let hash = "import hashlib, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
body = open(sys.argv[2], 'rb').read()
db.execute('UPDATE kern_db SET kernel_blob = ?, kernel_hash = ?, uncompressed_size = 0',
    (body, hashlib.md5(body).hexdigest()))
db.commit()";
    let file = machine.root.join("other.o");
    std::fs::write(&file, other).unwrap();
    let retarget = move |path: &Path| {
        run(command("python3").args(["-c", hash]).arg(path).arg(&file));
    };
    system(retarget, OTHER_TARGET, Class::WrongTarget);
}

/// A user's kdb that is wrong: what is compiled is handed out, and the rest as
/// `check` wants it.
#[track_caller]
fn user(prepare: impl FnOnce(&Machine), check: impl FnOnce(&Machine, &str)) {
    let machine = Machine::with_kdb();
    prepare(&machine);
    let (args_0, args_7, object) = (args(0), args(7), machine.object_file(7));
    let mut driver = machine.program("driver.c");
    driver.arg("--callback").args(["compile", NAME, &args_7, &object]);
    let output = run(driver.args(["get", NAME, &args_7, "get", NAME, &args_0]));
    let printed = text(output.stdout);
    let (found, bytes) = (hash(&self::object(7)), self::object(7).len());
    let line = format!("compile status=0 layer=4 size={bytes} hash={found:016x} ");
    assert!(printed.contains(&line), "{printed}");
    assert!(printed.contains(&there("get", 2, 0, Some(&machine.kdb()))), "{printed}");
    let again = format!("size={bytes} hash={found:016x} ");
    assert_eq!(printed.matches(&again).count(), 2, "compiled, then found: {printed}");
    check(&machine, &printed);
}

#[test]
fn a_users_file_that_is_no_kdb_is_moved_aside() {
    let garbage = |machine: &Machine| {
        std::fs::create_dir(machine.user()).unwrap();
        std::fs::write(machine.ukdb(), [7; 5000]).unwrap();
    };
    user(garbage, |machine, printed| {
        assert_eq!(printed.matches(&miss(3, MOVED_ASIDE, &machine.ukdb())).count(), 1, "{printed}");
        assert!(printed.contains(&there("get", 3, 7, Some(&machine.ukdb()))), "{printed}");
        let expected = format!("kind={} file={}", Class::Corrupt as u8, machine.ukdb().display());
        assert_eq!(lines(printed, "warning mine "), [format!("warning mine {expected}")]);
        let kept = machine.user().join(format!("{UKDB}.corrupt-1"));
        assert_eq!(std::fs::read(kept).unwrap(), [7; 5000]);
    });
}

#[test]
fn a_users_kdb_that_others_may_write_to_is_not_trusted() {
    let open_to_all = |machine: &Machine| {
        std::fs::create_dir(machine.user()).unwrap();
        write_kdb(&machine.ukdb(), &[7]);
        std::fs::set_permissions(machine.ukdb(), std::fs::Permissions::from_mode(0o666)).unwrap();
    };
    user(open_to_all, |machine, printed| {
        assert!(printed.contains(&miss(3, UNTRUSTED, &machine.ukdb())), "{printed}");
        assert!(lines(printed, "compile")[0].contains("not-stored=failed to"), "{printed}");
        let expected = format!("kind={} ", Class::Untrusted as u8);
        assert!(printed.contains(&expected), "{printed}");
    });
}

#[test]
fn a_file_in_place_of_the_users_directory() {
    user(
        |machine| std::fs::write(machine.user(), "a file").unwrap(),
        |machine, printed| {
            assert!(lines(printed, "compile")[0].contains("not-stored=failed to"), "{printed}");
            let head = format!("warning mine kind={} ", Class::UserPlace as u8);
            assert_eq!(lines(printed, "warning ").len(), 1, "{printed}");
            assert!(printed.starts_with(&head), "{printed}");
            assert_eq!(std::fs::read(machine.user()).unwrap(), b"a file");
        },
    );
}

/// The number of the user that [`unprivileged`] starts programs as.
fn user_without_rights() -> u32 {
    let user = rustix::process::geteuid();
    if user.is_root() { 65534 } else { user.as_raw() }
}

/// The driver as a user without rights: `nobody` where the tests are root.
fn unprivileged(machine: &Machine) -> Command {
    let program = machine.compile(&c_source("driver.c"));
    if rustix::process::geteuid().is_root() {
        let mut driver = command("setpriv");
        driver.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        machine.environment(driver)
    } else {
        machine.environment(command(program))
    }
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory that belongs to the user without rights.
fn own_directory(path: &Path, mode: u32) {
    std::fs::create_dir(path).unwrap();
    chown(path, Some(user_without_rights()), None).unwrap();
    chmod(path, mode);
}

#[test]
fn a_read_only_user_directory() {
    let machine = Machine::with_kdb();
    std::fs::create_dir(machine.user()).unwrap();
    chmod(&machine.user(), 0o555);
    let (args_7, object) = (args(7), machine.object_file(7));
    let mut driver = unprivileged(&machine);
    driver.arg("--callback").args(["compile", NAME, &args_7, &object, "get", NAME, &args_7]);
    let printed = text(run(&mut driver).stdout);
    assert!(printed.starts_with(&format!("warning mine kind={} ", Class::UserPlace as u8)));
    assert_eq!(lines(&printed, "warning ").len(), 1, "{printed}");
    assert!(lines(&printed, "compile")[0].contains("not-stored=failed to save"), "{printed}");
    let memory = there("get", 1, 7, None);
    assert!(printed.contains(&memory), "it is kept in memory: {printed}");
}

#[test]
fn an_installed_file_that_may_not_be_read() {
    let machine = Machine::with_kdb();
    own_directory(&machine.user(), 0o700);
    chmod(&machine.kdb(), 0o000);
    check_system(&machine, &unprivileged, UNREADABLE, Class::Unreadable);
}

#[test]
fn a_write_ahead_log_in_a_read_only_directory() {
    let machine = Machine::with_kdb();
    own_directory(&machine.user(), 0o700);
    let wal = "import sqlite3, sys
assert sqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode=WAL').fetchone() == ('wal',)";
    run(command("python3").args(["-c", wal]).arg(machine.kdb()));
    let directory = machine.root.join("system");
    chmod(&directory, 0o555);
    check_system(&machine, &unprivileged, UNREADABLE, Class::WalMode);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "nothing is made beside it");
    chmod(&directory, 0o755);
}

/// Without a home, or with one that is read-only: a private directory below
/// the temporary one, and one warning that says so.
#[test]
fn without_a_home_kernels_are_kept_in_a_private_temporary_directory() {
    for home in [None, Some("home")] {
        let machine = Machine::with_kdb();
        own_directory(&machine.root.join("temp"), 0o700);
        own_directory(&machine.root.join("home"), 0o555);
        let driver = || {
            let mut driver = unprivileged(&machine);
            driver.env_remove("MIOPEN_CUSTOM_CACHE_DIR").env_remove("HOME");
            driver.env("TMPDIR", machine.root.join("temp"));
            driver.envs(home.map(|home| ("HOME", machine.root.join(home))));
            driver
        };
        let private = machine.root.join(format!("temp/gfxpack-{}", user_without_rights()));
        let ukdb = private.join("miopen").join(env!("CARGO_PKG_VERSION")).join(UKDB);
        let (args_7, object) = (args(7), machine.object_file(7));
        let steps = ["compile", NAME, &args_7, &object, "get", NAME, &args_7];
        let printed = text(run(driver().arg("--callback").args(steps)).stdout);
        assert!(printed.starts_with(&format!("warning mine kind={} ", Class::UserPlace as u8)));
        assert_eq!(lines(&printed, "warning mine ").len(), 1, "{printed}");
        assert!(printed.contains(&there("compile", 4, 7, None)), "{printed}");
        assert!(printed.contains(&there("get", 3, 7, Some(&ukdb))), "{printed}");
        // The next process finds it there.
        let output = run(driver().args(["get", NAME, &args_7]));
        assert!(text(output.stdout).contains(&there("get", 3, 7, Some(&ukdb))));
        assert_eq!(text(output.stderr).lines().count(), 1);
        assert_eq!(std::fs::metadata(private).unwrap().permissions().mode() & 0o777, 0o700);
        chmod(&machine.root.join("home"), 0o755);
    }
}

/// Kernels that no compression makes smaller, as files and steps of the
/// driver: each compiled, then each asked for.
struct Large {
    args: Vec<String>,
    bytes: Vec<Vec<u8>>,
    steps: Vec<String>,
}

impl Large {
    fn new(machine: &Machine) -> Self {
        let mut large = Self { args: Vec::new(), bytes: Vec::new(), steps: Vec::new() };
        let directory = machine.root.join("large");
        std::fs::create_dir(&directory).unwrap();
        let mut word = 0x2545_f491_4f6c_dd1d_u64;
        for number in 0..40 {
            let mut bytes = object(0);
            bytes.extend((0..500).flat_map(|_| {
                word ^= word << 13;
                word ^= word >> 7;
                word ^= word << 17;
                word.to_le_bytes()
            }));
            let file: PathBuf = directory.join(number.to_string());
            std::fs::write(&file, &bytes).unwrap();
            large.args.push(args(number));
            large.bytes.push(bytes);
            let file = file.to_str().unwrap().to_owned();
            large.steps.extend(["compile".into(), NAME.into(), args(number), file]);
        }
        let gets = large.args.iter().flat_map(|args| ["get".into(), NAME.into(), args.clone()]);
        large.steps.extend(gets.collect::<Vec<String>>());
        large
    }

    /// Everything was handed out and is found again, whether it could be saved
    /// or not, and one warning says that some could not.
    #[track_caller]
    fn check(&self, printed: &str) {
        for (args, bytes) in self.args.iter().zip(&self.bytes) {
            let right = format!(" size={} hash={:016x} ", bytes.len(), hash(bytes));
            assert_eq!(printed.matches(&right).count(), 2, "{args}: {printed}");
        }
        assert_eq!(lines(printed, "get status=0 ").len(), self.args.len(), "{printed}");
        assert!(printed.matches("not-stored=failed to save").count() > 10, "{printed}");
        assert!(lines(printed, "get status=0 layer=1 ").len() > 10, "from memory: {printed}");
        let warnings = lines(printed, "warning mine ");
        assert_eq!(warnings.len(), 2, "no kdb is installed, and the disk is full: {printed}");
        let full = format!("warning mine kind={} ", Class::NotStored as u8);
        assert!(warnings[1].starts_with(&full), "{printed}");
    }
}

/// A small tmpfs of the program's own, where this may be mounted.
#[test]
fn a_full_tmpfs_loses_nothing() {
    const MAY_NOT_MOUNT: i32 = 77;
    if !rustix::process::geteuid().is_root() {
        // The other test of a full disk is for all users.
        return;
    }
    let machine = Machine::new();
    let large = Large::new(&machine);
    std::fs::create_dir(machine.user()).unwrap();
    let program = machine.compile(&c_source("driver.c"));
    let script = "mount -t tmpfs -o size=48k,mode=0700 none \"$0\" || exit 77; exec \"$@\"";
    let mut driver = machine.environment(command("unshare"));
    driver.args(["--mount", "sh", "-c", script]).arg(machine.user()).arg(program);
    let output = driver.arg("--callback").args(&large.steps).output().unwrap();
    if output.status.code() != Some(MAY_NOT_MOUNT) {
        assert!(output.status.success(), "{output:?}");
        large.check(&text(output.stdout));
    }
}

/// A disk that takes no more, as a limit on the size of files.
#[test]
fn a_full_disk_loses_nothing() {
    let machine = Machine::new();
    let large = Large::new(&machine);
    let program = machine.compile(&c_source("driver.c"));
    let launch = "import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (49152, 49152))
os.execv(sys.argv[1], sys.argv[1:])";
    let mut driver = machine.environment(command("python3"));
    driver.args(["-c", launch]).arg(program).arg("--callback").args(&large.steps);
    large.check(&text(run(&mut driver).stdout));
    let integrity = "SELECT count(*) FROM kern_db WHERE (SELECT integrity_check = 'ok' \
                     FROM pragma_integrity_check)";
    let ukdb = rusqlite::Connection::open(machine.ukdb()).unwrap();
    let kept: i64 = ukdb.query_row(integrity, [], |row| row.get(0)).unwrap();
    assert!(kept > 0, "the file is whole and has what was saved");
}
