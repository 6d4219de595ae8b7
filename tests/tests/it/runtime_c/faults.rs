//! Faults of files and directories, from C: the kernel is compiled, one warning names the reason,
//! and nothing else happens.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use super::support::*;

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
fn a_damaged_installed_kdb_is_reported_once() {
    system(|path| std::fs::write(path, "").unwrap(), UNREADABLE, Class::TooSmall);
    system(|path| std::fs::write(path, [7; 5000]).unwrap(), UNREADABLE, Class::Corrupt);
    let drop_table = |path: &Path| sql(path, "DROP TABLE kern_db");
    system(drop_table, UNREADABLE, Class::WrongSchema);
    let directory = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    system(directory, UNREADABLE, Class::Unreadable);
}

#[test]
fn an_installed_kernel_with_damaged_rows_is_compiled() {
    system(set("kernel_hash = lower(hex(zeroblob(16)))"), DAMAGED, Class::Corrupt);
    let no_code = "kernel_blob = x'00', kernel_hash = '93b885adfe0da089cdf634904fd59f71', \
                   uncompressed_size = 0";
    system(set(no_code), NO_CODE_OBJECT, Class::WrongTarget);
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
