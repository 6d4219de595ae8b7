//! An installed kdb that is damaged, from C: the kernel is compiled, one warning names the reason,
//! and nothing else happens. What else can be wrong, the crate's own tests show.

use std::path::Path;

use super::support::*;

const UNREADABLE: u8 = 2;
const DAMAGED: u8 = 6;
const NO_CODE_OBJECT: u8 = 7;

/// `gfxpack_warning_class`.
#[derive(Debug, Clone, Copy)]
enum Class {
    TooSmall = 1,
    Corrupt = 2,
    WrongSchema = 4,
    WrongTarget = 6,
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
    let driver = || machine.program("driver.c");
    let (args, object) = (args(0), machine.object_file(0));
    let steps = ["get", NAME, &args, "compile", NAME, &args, &object, "get", NAME, &args];
    let output = run(driver().arg("--callback").args(steps));
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
    let output = run(driver().args(["get", NAME, &args, "get", NAME, &args]));
    assert_eq!(text(output.stderr), printed_text);
}

#[test]
fn a_damaged_installed_kdb_is_reported_once_and_its_kernels_are_compiled() {
    system(|path| std::fs::write(path, "").unwrap(), UNREADABLE, Class::TooSmall);
    system(|path| std::fs::write(path, [7; 5000]).unwrap(), UNREADABLE, Class::Corrupt);
    system(|path| sql(path, "DROP TABLE kern_db"), UNREADABLE, Class::WrongSchema);
    let hash = "UPDATE kern_db SET kernel_hash = lower(hex(zeroblob(16)))";
    system(|path| sql(path, hash), DAMAGED, Class::Corrupt);
    let no_code = "UPDATE kern_db SET kernel_blob = x'00', uncompressed_size = 0, \
                   kernel_hash = '93b885adfe0da089cdf634904fd59f71'";
    system(|path| sql(path, no_code), NO_CODE_OBJECT, Class::WrongTarget);
}
