//! The texts that users read, byte for byte.

use gfxpack_runtime::{Config, KdbDirectories, KernelCache, UserDirectory, WarningSink};

use crate::support::*;

fn stderr(level: &str, sink: &str) -> (String, std::path::PathBuf, Machine) {
    let machine = Machine::new(0);
    let corrupt = machine.root.join("corrupt");
    std::fs::create_dir(&corrupt).unwrap();
    std::fs::write(corrupt.join(NAME), [7; 600]).unwrap();
    let root = machine.root.to_str().unwrap();
    let output = run(&mut child("warnings::child_process_that_warns", &[root, level, sink]));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    (String::from_utf8(output.stderr).unwrap(), corrupt.join(NAME), machine)
}

/// Two threads with two caches each request two kernels, from a directory
/// without a kdb and from one with a corrupt kdb.
#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_that_warns() {
    let arguments = child_arguments();
    let root = std::path::Path::new(&arguments[0]);
    let user = || UserDirectory::Disabled("of the test".to_owned());
    for directory in ["system", "corrupt"] {
        for _ in 0..2 {
            let directories = KdbDirectories::new([root.join(directory)], user());
            let mut config = Config::new("gfx906@60".parse().unwrap(), directories);
            config.log_level = arguments[1].parse().unwrap();
            if arguments[2] == "silent" {
                config.warnings = WarningSink::Silent;
            }
            let cache = KernelCache::open(config);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| [0, 1].map(|number| cache.get(&numbered(number))));
                }
            });
        }
    }
}

#[test]
fn a_missing_kdb_gives_one_warning_with_the_documented_text() {
    for level in ["0", "4", "7"] {
        let (text, corrupt, _machine) = stderr(level, "stderr");
        let expected = format!(
            "MIOpen(HIP): Warning [SQLiteBase] Missing system database file:gfx906_60.kdb \
             Performance may degrade\n\
             hint: install the package miopen-hip-gfx906-60kdb (or miopen-hip-gfx906kdb for all \
             gfx906 devices)\n\
             gfxpack: warning: failed to read kdb `{}`: it is no SQLite 3 file; check the download: \
             the file holds something else\n",
            corrupt.display()
        );
        assert_eq!(text, expected, "at level {level}");
    }
}

#[test]
fn levels_1_to_3_are_quiet() {
    for level in ["1", "2", "3"] {
        assert_eq!(stderr(level, "stderr").0, "", "at level {level}");
    }
    assert_eq!(stderr("0", "silent").0, "");
}

#[test]
fn the_warning_names_the_package_for_the_device() {
    let text = |target: &str| {
        let machine = Machine::new(0);
        let warnings = RecordedWarnings::default();
        let directories = KdbDirectories::new(
            [&machine.system],
            UserDirectory::Disabled("of the test".to_owned()),
        );
        let mut config = Config::new(target.parse().unwrap(), directories);
        config.warnings = warnings.sink();
        drop(KernelCache::open(config).get(&numbered(0)));
        warnings.texts().remove(0)
    };
    let warning = |file: &str, hint: &str| {
        format!(
            "MIOpen(HIP): Warning [SQLiteBase] Missing system database file:{file} Performance may \
             degrade\nhint: install the package {hint}"
        )
    };
    assert_eq!(
        text("gfx90a:xnack+@104"),
        warning(
            "gfx90a_xnack68.kdb",
            "miopen-hip-gfx90a-xnack-104kdb (or miopen-hip-gfx90a-xnackkdb for all gfx90a_xnack \
             devices)"
        )
    );
    assert_eq!(text("gfx1030"), warning("gfx1030.kdb", "miopen-hip-gfx1030kdb"));
}

#[test]
fn a_device_wide_kdb_gives_no_missing_kdb_warning() {
    let machine = Machine::new(0);
    write_kdb(&machine.system.join("gfx906.kdb"), &[(numbered(0), object(0))]);
    let cache = machine.open();
    assert_eq!((cache.layer(0), cache.layer(1)), (Some("system"), None));
    assert!(cache.warnings.texts().is_empty());
}

#[test]
fn file_names_cannot_break_lines() {
    let machine = Machine::new(0);
    let system = machine.root.join("two\nlines\u{1b}[31m");
    std::fs::create_dir(&system).unwrap();
    std::fs::write(system.join(NAME), b"").unwrap();
    let user = UserDirectory::Disabled("of the test".to_owned());
    let cache = Cache::open(config(&system, user));
    assert_eq!(cache.layer(0), None);
    let text = cache.warnings.texts().remove(0);
    assert!(!text.contains(char::is_control), "{text:?}");
}
