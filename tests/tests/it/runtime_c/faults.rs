//! An installed kdb that is damaged, from C: the kernel is compiled, one warning names the reason,
//! and nothing else happens. What else can be wrong, the crate's own tests show.

use super::support::*;

/// `GFXPACK_REASON_DAMAGED` and `GFXPACK_WARNING_CLASS_CORRUPT`.
const DAMAGED: u8 = 6;
const CORRUPT: u8 = 2;

/// The lines that begin so.
fn lines<'a>(printed: &'a str, begin: &str) -> Vec<&'a str> {
    printed.lines().filter(|line| line.starts_with(begin)).collect()
}

#[test]
fn a_damaged_installed_kdb_is_reported_once_and_its_kernels_are_compiled() {
    let machine = Machine::with_kdb();
    sql(&machine.kdb(), "UPDATE kern_db SET kernel_hash = lower(hex(zeroblob(16)))");
    let driver = || machine.program("driver.c");
    let (args, object) = (args(0), machine.object_file(0));
    let steps = ["get", NAME, &args, "compile", NAME, &args, &object, "get", NAME, &args];
    let output = run(driver().arg("--callback").args(steps));
    let printed = text(output.stdout);
    assert_eq!(text(output.stderr), "");
    assert_eq!(printed.matches(&nothing("get", 1)).count(), 1, "{printed}");
    assert!(printed.contains(&there("compile", 4, 0, None)), "{printed}");
    assert!(printed.contains(&there("get", 3, 0, Some(&machine.ukdb()))), "{printed}");
    assert_eq!(printed.matches(&miss(2, DAMAGED, &machine.kdb())).count(), 3, "{printed}");
    let expected = format!("warning mine kind={CORRUPT} file={}", machine.kdb().display());
    assert_eq!(lines(&printed, "warning "), [expected], "{printed}");
    let warnings = lines(&printed, "gfxpack: warning: failed to ");
    assert_eq!(warnings.len(), 1, "{printed}");

    // The same text on standard error.
    let output = run(driver().args(["get", NAME, &args, "get", NAME, &args]));
    assert_eq!(text(output.stderr), format!("{}\n", warnings[0]));
}
